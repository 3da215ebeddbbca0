#include "cli/invocation.hpp"
#include "sdk/document/describe.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

namespace opensandbox::cli {

namespace {

/// The ports of "80,443".
std::optional<std::vector<std::int64_t>> read_ports(std::string_view text) {
    std::vector<std::int64_t> ports;
    while (true) {
        const auto comma = text.find(',');
        const std::string_view item = text.substr(0, comma);
        std::uint16_t port = 0;
        const auto [end, failed] = std::from_chars(item.data(), item.data() + item.size(), port);
        if (failed != std::errc() || end != item.data() + item.size() || port == 0)
            return std::nullopt;
        ports.push_back(port);
        if (comma == text.npos) return ports;
        text.remove_prefix(comma + 1);
    }
}

/// "TARGET", "TARGET ports=80,443" or "ports=80,443".
std::optional<sdk::NetworkRule> read_rule(std::string action, std::string_view text) {
    constexpr std::string_view kPorts = "ports=";
    sdk::NetworkRule rule(std::move(action), std::string(text));
    const auto at = text.starts_with(kPorts) ? 0 : text.rfind(" ports=");
    if (at == text.npos) return rule.target.empty() ? std::nullopt : std::optional(rule);
    const std::string_view target = text.substr(0, at);
    const auto last = target.find_last_not_of(" \t");
    rule.target = last == target.npos ? std::string() : std::string(target.substr(0, last + 1));
    auto ports = read_ports(text.substr(text.find(kPorts, at) + kPorts.size()));
    if (!ports) return std::nullopt;
    rule.ports = std::move(*ports);
    return rule;
}

/// ACTION=RULE; the action in either case, spaces around both allowed.
std::vector<sdk::NetworkRule> read_rules(Arguments& arguments) {
    auto trimmed = [](const std::string& text) {
        const auto first = text.find_first_not_of(" \t");
        if (first == std::string::npos) return std::string();
        return text.substr(first, text.find_last_not_of(" \t") - first + 1);
    };
    std::vector<sdk::NetworkRule> rules;
    for (auto& [name, value] : arguments.pairs("--rule")) {
        std::string action = trimmed(name);
        std::ranges::transform(action, action.begin(),
                               [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
        const bool known = action == "allow" || action == "deny";
        auto rule = known ? read_rule(std::move(action), trimmed(value)) : std::nullopt;
        if (!rule) {
            arguments.refuse("--rule", name + "=" + value,
                             "allow=TARGET or deny=TARGET, such as allow=pypi.org or "
                             "'deny=10.0.0.0/8 ports=22,80'");
            continue;
        }
        rules.push_back(std::move(*rule));
    }
    return rules;
}

Awaitable<Outcome> get_egress_policy(Invocation& invocation) {
    auto connection = invocation.connect();
    if (!connection) co_return connection.error();
    sdk::Egress egress(*connection, invocation.arguments().one("SANDBOX_ID"));
    auto status = co_await egress.get();
    if (!status) co_return status.error();
    const json::object document = describe(status->policy);
    if (invocation.format() != Format::table) co_return invocation.print_object(document);
    invocation.print_raw("default_action  " + status->policy.default_action + "\n\n");
    co_return invocation.print_list(
        document, document.at("egress").as_array(),
        {{"ACTION", "action"}, {"TARGET", "target"}, {"PORTS", "ports"}});
}

Awaitable<Outcome> patch_egress(Invocation& invocation) {
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
    Command command = make_document_command("egress", "get", "Show what a sandbox may reach.",
                                            {kSandboxId}, get_egress_policy);
    command.examples = {{"egress get SANDBOX_ID", "the rules; the first that fits decides"}};
    table.commands.push_back(std::move(command));

    command = make_document_command("egress", "patch", "Change what a sandbox may reach.",
                                    {kSandboxId}, patch_egress);
    command.details =
        "Rules are put before those that are there; one with the same target and ports is\n"
        "replaced. ports=PORT,PORT behind an address or block limits the rule to these TCP\n"
        "ports; alone it speaks of every address. A name has its port behind it\n"
        "(example.com:443). The sandbox must have been created with a network policy.";
    command.options = {{"--rule", 0, "ACTION=TARGET",
                        "allow or deny, and a name, *.name, address or block, with ports or not.",
                        true, true}};
    command.examples = {
        {"egress patch SANDBOX_ID --rule allow=pypi.org --rule allow=*.pythonhosted.org",
         "for pip"},
        {"egress patch SANDBOX_ID --rule deny=169.254.0.0/16", "close a block of addresses"},
        {"egress patch SANDBOX_ID --rule deny=ports=25,465,587", "no mail to anywhere"}};
    table.commands.push_back(std::move(command));
}

}  // namespace opensandbox::cli
