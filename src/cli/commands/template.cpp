#include "cli/input_document.hpp"
#include "cli/invocation.hpp"
#include "sdk/document/describe.hpp"

#include <array>

namespace opensandbox::cli {

namespace {

constexpr std::string_view kTemplateIds = "TEMPLATE_ID";
const Positional kOneTemplate{kTemplateIds, "The template's id."};

/// Options that describe the template, and so have no place beside --file.
constexpr std::array kDescribingTemplate{
    "--image",    "--publish", "--resource",        "--entrypoint",    "--env",
    "--metadata", "--format",  "--readiness-probe", "--warmup-seconds"};

/// Members that a request may have.
constexpr std::array<std::string_view, 8> kMembers{
    "image", "publish", "resourceLimits", "entrypoint", "env", "metadata", "format", "readiness"};

sdk::TemplateRequest read_request(Arguments& arguments) {
    sdk::TemplateRequest request;
    request.image = arguments.get("--image").value_or("");
    request.publish = arguments.get("--publish").value_or("");
    for (auto option : {"--image", "--publish"}) {
        if (arguments.get(option).value_or("").empty()) {
            arguments.refuse(std::string(option) + " is missing; or give a request with --file");
        }
    }
    for (auto& [name, value] : arguments.pairs("--resource"))
        request.resource_limits[name] = value;
    for (auto& [name, value] : arguments.pairs("--env"))
        request.environment[name] = value;
    for (auto& [name, value] : arguments.pairs("--metadata"))
        request.metadata[name] = value;
    request.entrypoint = arguments.all("--entrypoint");
    if (auto format = arguments.get("--format")) {
        request.format =
            arguments.choice("--format", *format, {"native", "overlaybd"}).value_or("");
    }
    auto probe = arguments.get("--readiness-probe");
    auto warmup = arguments.integer("--warmup-seconds", 0, INT32_MAX);
    if (probe || warmup) {
        request.readiness.emplace();
        request.readiness->probe = std::move(probe);
        request.readiness->warmup_seconds = warmup;
    }
    return request;
}

Awaitable<sdk::Result<sdk::TemplateRequest>> read_request_file(Invocation& invocation) {
    auto body = co_await read_input_object(invocation, "--file");
    if (!body) co_return body.error();
    for (const auto& member : *body) {
        if (std::ranges::find(kMembers, std::string_view(member.key())) != kMembers.end()) continue;
        std::string names;
        for (auto name : kMembers)
            names += (names.empty() ? "" : ", ") + std::string(name);
        co_return sdk::Error(
            sdk::ErrorCode::invalid_argument,
            "--file: there is no member '" + std::string(member.key()) + "'; there are " + names);
    }
    sdk::TemplateRequest request;
    request.request_body = json::serialize(*body);
    co_return request;
}

Awaitable<Outcome> create_template(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    const auto file = arguments.get("--file");
    sdk::TemplateRequest request;
    if (file) {
        for (auto option : kDescribingTemplate) {
            if (!arguments.has(option)) continue;
            arguments.refuse(std::string(option) + ": not together with --file");
        }
    } else {
        request = read_request(arguments);
    }
    if (arguments.problem()) co_return *arguments.problem();
    if (file) {
        auto read = co_await read_request_file(invocation);
        if (!read) co_return read.error();
        request = std::move(*read);
    }
    auto connection = invocation.connect();
    if (!connection) co_return connection.error();
    sdk::Templates templates(*connection);
    auto info = co_await templates.create(std::move(request));
    if (!info) co_return info.error();
    json::object document;
    document["template_id"] = info->id;
    document["image"] = info->image;
    document["status"] = info->phase;
    if (file) document["request_file"] = *file;
    co_return invocation.print_object(document);
}

/// A template as two columns: the parts of its status apart.
json::object flattened(const sdk::TemplateInfo& info) {
    json::object out = describe(info);
    out["status"] = info.phase;
    if (info.message) out["status_message"] = *info.message;
    return out;
}

Awaitable<Outcome> get_template(Invocation& invocation) {
    auto connection = invocation.connect();
    if (!connection) co_return connection.error();
    sdk::Templates templates(*connection);
    auto info = co_await templates.get(invocation.arguments().one(kTemplateIds));
    if (!info) co_return info.error();
    co_return invocation.print_object(invocation.format() == Format::table ? flattened(*info)
                                                                           : describe(*info));
}

Awaitable<Outcome> list_templates(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    sdk::TemplateFilter filter;
    for (auto& [name, value] : arguments.pairs("--metadata"))
        filter.metadata[name] = value;
    if (auto page = arguments.integer("--page", 1, INT32_MAX)) {
        filter.page = static_cast<unsigned>(*page);
    }
    if (auto size = arguments.integer("--page-size", 1, 200)) {
        filter.page_size = static_cast<unsigned>(*size);
    }
    if (arguments.problem()) co_return *arguments.problem();
    auto connection = invocation.connect();
    if (!connection) co_return connection.error();
    sdk::Templates templates(*connection);
    auto page = co_await templates.list(std::move(filter));
    if (!page) co_return page.error();
    const json::object document = describe(*page);
    co_return invocation.print_list(document, document.at("items").as_array(),
                                    {{"TEMPLATE_ID", "template_id"},
                                     {"STATUS", "status.phase"},
                                     {"IMAGE", "image"},
                                     {"FORMAT", "format"},
                                     {"CREATED_AT", "created_at"},
                                     {"UPDATED_AT", "updated_at"}});
}

Awaitable<Outcome> remove_template(Invocation& invocation) {
    auto connection = invocation.connect();
    if (!connection) co_return connection.error();
    sdk::Templates templates(*connection);
    const std::string id = invocation.arguments().one(kTemplateIds);
    auto removed = co_await templates.remove(id);
    if (!removed) co_return removed.error();
    co_return invocation.print_done("Template deleted: " + id);
}

}  // namespace

void add_template_commands(CommandTable& table) {
    Command command = make_document_command(
        "template", "create", "Build a golden image to start sandboxes from.", {}, create_template);
    command.details =
        "Accepted at once and built in the background: 'template get' shows the state. Only\n"
        "servers with a runtime that has templates can do it; others say so.";
    command.options = {
        {"--image", 'i', "IMAGE", "Image to build from. Required without --file."},
        {"--publish", 'p', "TARGET", "Where the artifacts go, s3://bucket/path. Likewise."},
        {"--file", 'f', "PATH", "JSON or YAML body of the request, instead of the other options."},
        {"--resource", 0, "KEY=VALUE", "Size of the machine: cpu=1, memory=512Mi, disk=2Gi.", true},
        {"--entrypoint", 0, "ARG", "One argument of the entrypoint.", true},
        {"--env", 'e', "KEY=VALUE", "Environment variable.", true},
        {"--metadata", 'm', "KEY=VALUE", "Label.", true},
        {"--format", 0, "native|overlaybd", "How it is stored (default: the server's)."},
        {"--readiness-probe", 0, "PROBE", "tcp://127.0.0.1:PORT or cmd://COMMAND."},
        {"--warmup-seconds", 0, "NUMBER", "How long to wait without a probe."}};
    command.examples = {
        {"template create -i python:3.12 -p s3://images/python", "with the server's defaults"},
        {"template create -i app -p s3://images/app --resource memory=1Gi --readiness-probe "
         "tcp://127.0.0.1:8080",
         "when its web server answers"}};
    table.commands.push_back(std::move(command));

    command = make_document_command("template", "get", "Show a template and how its build goes.",
                                    {kOneTemplate}, get_template);
    command.examples = {{"template get TEMPLATE_ID -o json", "for scripts"}};
    table.commands.push_back(std::move(command));

    command = make_document_command("template", "list", "List templates.", {}, list_templates);
    command.options = {{"--metadata", 'm', "KEY=VALUE", "Only templates with this label.", true},
                       {"--page", 0, "NUMBER", "Page to show, from 1."},
                       {"--page-size", 0, "NUMBER", "Templates a page, 1 to 200."}};
    command.examples = {{"template list -m team=blue", "those of a team"}};
    table.commands.push_back(std::move(command));

    command = make_document_command("template", "delete",
                                    "Delete a template; sandboxes made from it stay.",
                                    {kOneTemplate}, remove_template);
    command.examples = {{"template delete TEMPLATE_ID", "when nothing needs it any more"}};
    table.commands.push_back(std::move(command));
}

}  // namespace opensandbox::cli
