#include "cli/describe.hpp"
#include "cli/invocation.hpp"

#include <algorithm>

namespace opensandbox::cli {

namespace {

const Positional kSandboxId{"SANDBOX_ID", "The sandbox's id."};

/// ACTION=TARGET; the action in either case, spaces around both allowed.
std::vector<sdk::NetworkRule> read_rules(Arguments& arguments) {
    auto trimmed = [](std::string text) {
        const auto first = text.find_first_not_of(" \t");
        if (first == std::string::npos) return std::string();
        return text.substr(first, text.find_last_not_of(" \t") - first + 1);
    };
    std::vector<sdk::NetworkRule> rules;
    for (auto& [name, value] : arguments.pairs("--rule")) {
        std::string action = trimmed(name);
        std::ranges::transform(action, action.begin(),
                               [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
        std::string target = trimmed(value);
        if ((action != "allow" && action != "deny") || target.empty()) {
            arguments.refuse("--rule", name + "=" + value,
                             "allow=TARGET or deny=TARGET, such as allow=pypi.org");
            continue;
        }
        rules.emplace_back(std::move(action), std::move(target));
    }
    return rules;
}

Awaitable<Outcome> get(Invocation& invocation) {
    auto connection = invocation.connect();
    if (!connection) co_return connection.error();
    sdk::Egress egress(*connection, invocation.arguments().one("SANDBOX_ID"));
    auto status = co_await egress.get();
    if (!status) co_return status.error();
    const json::object document = describe(status->policy);
    if (invocation.format() != Format::table) co_return invocation.print_object(document);
    invocation.print_raw("default_action  " + status->policy.default_action + "\n\n");
    co_return invocation.print_list(document, document.at("egress").as_array(),
                                    {{"ACTION", "action"}, {"TARGET", "target"}});
}

Awaitable<Outcome> patch(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    auto rules = read_rules(arguments);
    if (arguments.problem()) co_return *arguments.problem();
    auto connection = invocation.connect();
    if (!connection) co_return connection.error();
    json::object document;
    document["sandbox_id"] = arguments.one("SANDBOX_ID");
    document["patched_rules"] = describe(rules);
    sdk::Egress egress(*connection, arguments.one("SANDBOX_ID"));
    auto status = co_await egress.patch(std::move(rules));
    if (!status) co_return status.error();
    co_return invocation.print_object(document);
}

}  // namespace

void add_egress_commands(CommandTable& table) {
    Command command =
        make_document_command("egress", "get", "Show what a sandbox may reach.", {kSandboxId}, get);
    command.examples = {{"egress get SANDBOX_ID", "the rules; the first that fits decides"}};
    table.commands.push_back(std::move(command));

    command = make_document_command("egress", "patch", "Change what a sandbox may reach.",
                                    {kSandboxId}, patch);
    command.details =
        "Rules are put before those that are there; one with the same target is replaced. The\n"
        "sandbox must have been created with a network policy.";
    command.options = {{"--rule", 0, "ACTION=TARGET",
                        "allow or deny, and a name, *.name, address or block.", true, true}};
    command.examples = {
        {"egress patch SANDBOX_ID --rule allow=pypi.org --rule allow=*.pythonhosted.org",
         "for pip"},
        {"egress patch SANDBOX_ID --rule deny=169.254.0.0/16", "close a block of addresses"}};
    table.commands.push_back(std::move(command));
}

}  // namespace opensandbox::cli
