#include "cli/duration.hpp"
#include "cli/invocation.hpp"
#include "net/task.hpp"

#include <fstream>
#include <sstream>

namespace opensandbox::cli {

namespace {

using namespace std::chrono_literals;

/// Options that describe the sandbox, and so have no place beside --file.
constexpr std::string_view kDescribing[] = {"--image",
                                            "--image-auth-username",
                                            "--image-auth-password",
                                            "--template",
                                            "--snapshot-id",
                                            "--timeout",
                                            "--env",
                                            "--metadata",
                                            "--extension",
                                            "--resource",
                                            "--entrypoint",
                                            "--network-policy-file",
                                            "--volumes-file",
                                            "--credential-proxy",
                                            "--interception-mode"};

/// Options that a template brings itself.
constexpr std::string_view kTemplateBrings[] = {"--image",
                                                "--env",
                                                "--resource",
                                                "--entrypoint",
                                                "--volumes-file",
                                                "--credential-proxy",
                                                "--interception-mode"};

std::string read_text_file(Arguments& arguments, std::string_view option) {
    auto path = arguments.get(option);
    if (!path) return {};
    std::ifstream in(*path, std::ios::binary);
    std::ostringstream text;
    if (in) text << in.rdbuf();
    if (!in || in.fail()) {
        arguments.refuse(option, *path, "the path of a file that can be read");
        return {};
    }
    return text.str();
}

void read_lifetime(Invocation& invocation, sdk::CreateOptions& options) {
    Arguments& arguments = invocation.arguments();
    auto apply = [&](const std::optional<std::chrono::milliseconds>& time) {
        options.timeout.reset();
        if (time) options.timeout = std::chrono::ceil<std::chrono::seconds>(*time);
    };
    if (auto given = arguments.duration_or_none("--timeout")) return apply(*given);
    const auto& kept = invocation.file().default_timeout;
    if (!kept) return;
    if (*kept == "none") return apply(std::nullopt);
    auto time = parse_duration_text(*kept);
    if (!time)
        return arguments.refuse("defaults.timeout", *kept, "a duration such as 10m, or none");
    apply(time);
}

void check_sources(Arguments& arguments, const sdk::CreateOptions& options) {
    int sources = 0;
    for (auto option : {"--image", "--template", "--snapshot-id"}) {
        if (arguments.has(option)) ++sources;
    }
    if (sources > 1) arguments.refuse("--image, --template and --snapshot-id exclude each other");
    if (!options.template_id.empty()) {
        for (auto option : kTemplateBrings) {
            if (!arguments.has(option)) continue;
            arguments.refuse(std::string(option) + ": not together with --template");
        }
        if (!arguments.has("--timeout") || !options.timeout) {
            arguments.refuse("--timeout: a template needs a lifetime, and not none");
        }
    }
    if (options.image.empty() && options.template_id.empty() && options.snapshot_id.empty()) {
        arguments.refuse(
            "--image IMAGE is missing; --image host is always there, defaults.image sets another");
    }
    if (!options.snapshot_id.empty() && options.image_auth) {
        arguments.refuse("--image-auth-username: not together with --snapshot-id");
    }
    if (options.credential_proxy && options.network_policy.empty()) {
        arguments.refuse("--credential-proxy: only together with --network-policy-file");
    }
    const std::string& mode = options.interception_mode;
    if (!mode.empty() && mode != "all" && mode != "credential-bound") {
        arguments.refuse("--interception-mode: must be all or credential-bound");
    } else if (!mode.empty() && !options.credential_proxy) {
        arguments.refuse("--interception-mode: only together with --credential-proxy");
    }
}

sdk::CreateOptions read_description(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    sdk::CreateOptions options;
    options.template_id = arguments.get("--template").value_or("");
    options.snapshot_id = arguments.get("--snapshot-id").value_or("");
    options.image = arguments.get("--image").value_or("");
    if (options.image.empty() && options.template_id.empty() && options.snapshot_id.empty()) {
        options.image = invocation.file().default_image.value_or("");
    }
    auto user = arguments.get("--image-auth-username");
    auto password = arguments.get("--image-auth-password");
    if (user.has_value() != password.has_value()) {
        arguments.refuse("--image-auth-username and --image-auth-password: give both or none");
    } else if (user) {
        options.image_auth.emplace();
        options.image_auth->username = *user;
        options.image_auth->password = *password;
    }
    read_lifetime(invocation, options);
    options.environment = arguments.pairs("--env");
    for (auto& [name, value] : arguments.pairs("--metadata"))
        options.metadata[name] = value;
    for (auto& [name, value] : arguments.pairs("--extension"))
        options.extensions[name] = value;
    for (auto& [name, value] : arguments.pairs("--resource"))
        options.resource_limits[name] = value;
    if (arguments.has("--entrypoint")) options.entrypoint = arguments.all("--entrypoint");
    options.network_policy = read_text_file(arguments, "--network-policy-file");
    options.volumes = read_text_file(arguments, "--volumes-file");
    options.credential_proxy = arguments.has("--credential-proxy");
    options.interception_mode = arguments.get("--interception-mode").value_or("");
    check_sources(arguments, options);
    return options;
}

/// A whole request; what it says of source and lifetime is read for the answer.
void read_request_file(Invocation& invocation, sdk::CreateOptions& options) {
    Arguments& arguments = invocation.arguments();
    const std::string text = read_text_file(arguments, "--file");
    if (arguments.problem()) return;
    const std::string path = arguments.get("--file").value_or("");
    auto document = json::parse(text);
    if (!document || !document->is_object()) {
        const std::string why = document ? "it is another JSON value" : document.error().message();
        return arguments.refuse("--file: " + path + " holds no JSON object: " + why);
    }
    json::object& body = document->get_object();
    // A lifetime of null is one: forever.
    if (!body.contains("timeout") && invocation.file().default_timeout) {
        read_lifetime(invocation, options);
        body["timeout"] = options.timeout ? json::value(options.timeout->count()) : json::value();
    }
    auto seconds = json::get_integer(body, "timeout");
    options.timeout.reset();
    if (seconds && *seconds) options.timeout = std::chrono::seconds(**seconds);
    auto template_id = json::get_string(body, "templateId");
    auto snapshot_id = json::get_string(body, "snapshotId");
    const json::value* image = json::find(body, "image");
    if (template_id && *template_id) options.template_id = **template_id;
    if (snapshot_id && *snapshot_id) options.snapshot_id = **snapshot_id;
    if (image && image->is_object()) {
        auto uri = json::get_string(image->get_object(), "uri");
        if (uri && *uri) options.image = **uri;
    }
    options.request_body = json::serialize(body);
}

sdk::CreateOptions read_options(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    sdk::CreateOptions options;
    if (arguments.has("--file")) {
        for (auto option : kDescribing) {
            if (!arguments.has(option)) continue;
            arguments.refuse(std::string(option) + ": not together with --file");
        }
        read_request_file(invocation, options);
    } else {
        options = read_description(invocation);
    }
    options.skip_health_check = arguments.has("--skip-health-check");
    if (auto limit = arguments.duration("--ready-timeout")) options.ready_timeout = *limit;
    return options;
}

json::object describe_creation(const sdk::CreateOptions& options, const std::string& id,
                               const std::optional<std::string>& request_file) {
    json::object document;
    document["id"] = id;
    document["status"] = "created";
    document["timeout"] = options.timeout ? to_clock_text(*options.timeout) : "manual-cleanup";
    if (request_file) document["request_file"] = *request_file;
    if (!options.template_id.empty())
        document["template"] = options.template_id;
    else if (!options.snapshot_id.empty())
        document["snapshot_id"] = options.snapshot_id;
    else
        document["image"] = options.image;
    return document;
}

Awaitable<Outcome> create_sandbox(Invocation& invocation) {
    const sdk::CreateOptions options = read_options(invocation);
    if (invocation.arguments().problem()) co_return *invocation.arguments().problem();
    auto connection = invocation.connect();
    if (!connection) co_return connection.error();
    Interrupts& interrupts = invocation.interrupts();
    interrupts.handle([] {});  // seen through, so that nothing is left behind unnamed
    std::optional<net::Deadline> notice;
    notice.emplace(invocation.executor(), 200ms,
                   [&] { invocation.terminal().show_progress("Creating a sandbox…"); });
    auto sandbox = co_await sdk::Sandbox::create(*connection, options);
    notice.reset();
    if (!sandbox) co_return sandbox.error();
    if (interrupts.received() != 0) {
        auto killed = co_await sandbox->kill();
        if (!killed) {
            invocation.terminal().print_error("sandbox " + sandbox->id() +
                                              " could not be deleted: " + killed.error().message());
        }
        co_return 128 + interrupts.received();
    }
    co_return invocation.print_object(
        describe_creation(options, sandbox->id(), invocation.arguments().get("--file")));
}

}  // namespace

void add_sandbox_create_command(CommandTable& table) {
    Command command;
    command.group = "sandbox";
    command.name = "create";
    command.summary = "Create a sandbox and wait until it answers.";
    command.formats = {Format::table, Format::json, Format::yaml};
    command.options = {
        {"--image", 'i', "IMAGE", "Image to start from (default: defaults.image)."},
        {"--image-auth-username", 0, "NAME", "User for a private registry."},
        {"--image-auth-password", 0, "TEXT", "Its password or token."},
        {"--template", 0, "ID", "Template to start from."},
        {"--snapshot-id", 0, "ID", "Snapshot to start from."},
        {"--file", 'f', "PATH",
         "JSON body of the create request, instead of the options\n"
         "that describe the sandbox; its names are the API's."},
        {"--timeout", 't', "DURATION", "Lifetime, or none (default 10m)."},
        {"--env", 'e', "KEY=VALUE", "Environment variable.", true},
        {"--metadata", 'm', "KEY=VALUE", "Label.", true},
        {"--extension", 0, "KEY=VALUE", "Extension parameter.", true},
        {"--resource", 0, "KEY=VALUE", "Limit, such as cpu=1 or memory=2Gi.", true},
        {"--entrypoint", 0, "ARG", "One argument of the entrypoint (default: tail -f /dev/null).",
         true},
        {"--network-policy-file", 0, "PATH", "Network policy, a JSON object."},
        {"--credential-proxy", 0, "", "Let the egress proxy add credentials."},
        {"--interception-mode", 0, "MODE",
         "all (default), or credential-bound: of HTTPS only what a\n"
         "credential of the vault is bound to."},
        {"--volumes-file", 0, "PATH", "Volumes, a JSON array."},
        {"--skip-health-check", 0, "", "Do not wait until it answers."},
        {"--ready-timeout", 0, "DURATION", "Longest wait for an answer (default 30s)."},
    };
    command.examples = {
        {"sandbox create -i host", "one that lives ten minutes"},
        {"sandbox create -i python:3.12 -t 1h -e DEBUG=1 --resource memory=4Gi", "with limits"},
        {"sandbox create -i host -t none -m team=blue -o json", "until it is killed, for scripts"}};
    command.run = create_sandbox;
    table.commands.push_back(std::move(command));
}

}  // namespace opensandbox::cli
