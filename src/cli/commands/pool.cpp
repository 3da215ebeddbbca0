#include "cli/invocation.hpp"
#include "sdk/transport.hpp"
#include "sdk/wire_reader.hpp"

namespace opensandbox::cli {

namespace {

const Positional kName{"POOL", "The pool's name."};
constexpr std::int64_t kMost = INT32_MAX;

/// Sends one request; the answer's document, empty when it has none.
Awaitable<sdk::Result<json::object>> ask(Invocation& invocation, std::string method,
                                         std::string target, std::optional<json::object> body) {
    auto connection = invocation.connect();
    if (!connection) co_return connection.error();
    sdk::Call call(std::move(method), std::move(target));
    if (body) {
        call.content = json::serialize(*body);
        call.fields.set("Content-Type", "application/json");
    }
    const auto& transport = connection->transport();
    auto reply = co_await transport->exchange(transport->lifecycle(), std::move(call));
    if (!reply) co_return reply.error();
    if (reply->body.empty()) co_return json::object();
    co_return sdk::wire::parse_object(reply->body);
}

std::string pool_target(Invocation& invocation) {
    return "/pools/" + http::percent_encode(invocation.arguments().one(kName.name));
}

Awaitable<Outcome> list_pools(Invocation& invocation) {
    std::optional<json::object> no_body;
    auto pools = co_await ask(invocation, "GET", "/pools", std::move(no_body));
    if (!pools) co_return pools.error();
    const json::value* items = json::find(*pools, "items");
    if (!items || !items->is_array()) {
        co_return sdk::Error(sdk::ErrorCode::protocol, "the answer breaks its format: no items");
    }
    co_return invocation.print_list(*pools, items->get_array(),
                                    {{"NAME", "name"},
                                     {"TOTAL", "status.total"},
                                     {"ALLOCATED", "status.allocated"},
                                     {"AVAILABLE", "status.available"},
                                     {"BUFFER_MIN", "capacitySpec.bufferMin"},
                                     {"BUFFER_MAX", "capacitySpec.bufferMax"},
                                     {"POOL_MIN", "capacitySpec.poolMin"},
                                     {"POOL_MAX", "capacitySpec.poolMax"}});
}

Awaitable<Outcome> get_pool(Invocation& invocation) {
    std::optional<json::object> no_body;
    auto pool = co_await ask(invocation, "GET", pool_target(invocation), std::move(no_body));
    if (!pool) co_return pool.error();
    co_return invocation.print_object(*pool);
}

json::object read_capacity(Arguments& arguments) {
    json::object capacity;
    auto put = [&](std::string_view option, std::string_view member) {
        if (auto number = arguments.integer(option, 0, kMost)) capacity[member] = *number;
    };
    put("--buffer-min", "bufferMin");
    put("--buffer-max", "bufferMax");
    put("--pool-min", "poolMin");
    put("--pool-max", "poolMax");
    return capacity;
}

json::object read_template(Arguments& arguments) {
    if (arguments.has("--template") == arguments.has("--image")) {
        arguments.refuse("one of --image and --template must be given");
        return {};
    }
    if (auto given = arguments.get("--template")) {
        auto document = json::parse(*given);
        if (document && document->is_object()) return std::move(document->get_object());
        arguments.refuse("--template", *given, "a JSON object");
        return {};
    }
    json::object image;
    image["uri"] = *arguments.get("--image");
    json::object limits;
    limits["cpu"] = arguments.get("--cpu").value_or("1");
    limits["memory"] = arguments.get("--memory").value_or("2Gi");
    json::object made;
    made["image"] = std::move(image);
    made["resourceLimits"] = std::move(limits);
    made["entrypoint"] = json::array{"tail", "-f", "/dev/null"};
    return made;
}

Awaitable<Outcome> create_pool(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    json::object body;
    body["name"] = arguments.one(kName.name);
    body["capacitySpec"] = read_capacity(arguments);
    body["template"] = read_template(arguments);
    if (arguments.problem()) co_return *arguments.problem();
    std::optional<json::object> with(std::move(body));
    auto pool = co_await ask(invocation, "POST", "/pools", std::move(with));
    if (!pool) co_return pool.error();
    co_return invocation.print_object(*pool);
}

Awaitable<Outcome> update(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    json::object body;
    body["capacitySpec"] = read_capacity(arguments);
    if (arguments.problem()) co_return *arguments.problem();
    std::optional<json::object> with(std::move(body));
    auto pool = co_await ask(invocation, "PUT", pool_target(invocation), std::move(with));
    if (!pool) co_return pool.error();
    co_return invocation.print_object(*pool);
}

Awaitable<Outcome> remove_pool(Invocation& invocation) {
    std::optional<json::object> no_body;
    auto gone = co_await ask(invocation, "DELETE", pool_target(invocation), std::move(no_body));
    if (!gone) co_return gone.error();
    co_return invocation.print_done("Pool deleted: " + invocation.arguments().one(kName.name));
}

}  // namespace

void add_pool_commands(CommandTable& table) {
    const std::vector<Option> capacity{
        {"--buffer-min", 0, "NUMBER", "Idle sandboxes to keep, at least.", false, true},
        {"--buffer-max", 0, "NUMBER", "Idle sandboxes to keep, at most.", false, true},
        {"--pool-min", 0, "NUMBER", "Sandboxes in all, at least.", false, true},
        {"--pool-max", 0, "NUMBER", "Sandboxes in all, at most.", false, true}};
    Command command =
        make_document_command("pool", "list", "List pools of ready sandboxes.", {}, list_pools);
    command.examples = {{"pool list", "all of them, with their figures"}};
    table.commands.push_back(std::move(command));

    command = make_document_command("pool", "get", "Show one pool.", {kName}, get_pool);
    command.examples = {{"pool get small -o json", "one, for scripts"}};
    table.commands.push_back(std::move(command));

    command = make_document_command("pool", "create", "Keep sandboxes of one kind ready.", {kName},
                                    create_pool);
    command.options = capacity;
    command.options.push_back({"--image", 'i', "IMAGE", "Image that its sandboxes start from."});
    command.options.push_back({"--cpu", 0, "CPUS", "Processors: 1, 0.5 or 500m (default 1)."});
    command.options.push_back({"--memory", 0, "SIZE", "Memory: 512Mi, 2Gi (default 2Gi)."});
    command.options.push_back(
        {"--template", 0, "JSON", "Instead of these: a whole create request without its timeout."});
    command.examples = {
        {"pool create small -i host --buffer-min 1 --buffer-max 4 --pool-min 0 --pool-max 20",
         "between one and four idle ones"}};
    table.commands.push_back(std::move(command));

    command =
        make_document_command("pool", "update", "Change how many a pool keeps.", {kName}, update);
    command.options = capacity;
    command.examples = {
        {"pool update small --buffer-min 0 --buffer-max 0 --pool-min 0 --pool-max 20",
         "keep none idle"}};
    table.commands.push_back(std::move(command));

    command = make_document_command("pool", "delete", "Delete a pool.", {kName}, remove_pool);
    command.examples = {{"pool delete small", "its idle sandboxes go with it"}};
    table.commands.push_back(std::move(command));
}

}  // namespace opensandbox::cli
