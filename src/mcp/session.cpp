#include "mcp/session.hpp"

#include "base/log.hpp"
#include "mcp/schema.hpp"
#include "version.hpp"

#include <boost/system/system_error.hpp>

#include <algorithm>

namespace opensandbox::mcp {

namespace {

constexpr std::string_view kServerName = "OpenSandbox Sandbox";

constexpr std::string_view kInstructions =
    "Isolated Linux sandboxes to run code in. sandbox_create gives a sandbox_id; pass it to every "
    "other tool. Run shell text with command_run (background=true for servers, then command_logs), "
    "keep a shell's directory and variables between runs with session_create and session_run, run "
    "code with the definitions of earlier code with code_run, move texts with file_write and "
    "file_read. Long output is cut: a result with a cursor or next_offset has more, ask for it "
    "with command_logs or file_read. A sandbox ends at its expires_at: "
    "sandbox_renew puts that off. snapshot_create keeps a file system, snapshot_restore starts "
    "others from it. When something fails look at sandbox_get_info, diagnostics_events and "
    "diagnostics_logs. Call sandbox_kill when you are done.";

/// A number or text, or nothing.
std::optional<json::value> progress_token(const json::object& params) {
    const json::value* meta = json::find(params, "_meta");
    if (meta == nullptr || !meta->is_object()) return {};
    const json::value* token = json::find(meta->get_object(), "progressToken");
    if (token == nullptr || !(token->is_string() || token->is_number())) return {};
    return *token;
}

json::object content_of(std::string_view text) {
    json::object block;
    block["type"] = "text";
    block["text"] = text;
    json::array content;
    content.emplace_back(std::move(block));
    json::object out;
    out["content"] = std::move(content);
    return out;
}

json::object success(json::object structured) {
    json::object out = content_of(json::serialize(structured));
    out["structuredContent"] = std::move(structured);
    out["isError"] = false;
    return out;
}

json::object failure(std::string_view message) {
    json::object out = content_of(message);
    out["isError"] = true;
    return out;
}

std::string sentence(const sdk::Error& error) {
    std::string text = error.message() + " [" + std::string(sdk::to_string(error.code()));
    if (!error.wire_code().empty()) text += ", " + error.wire_code();
    if (!error.request_id().empty()) text += ", request " + error.request_id();
    return text + "]";
}

}  // namespace

bool is_protocol_version(std::string_view version) {
    return std::ranges::find(kProtocolVersions, version) != std::end(kProtocolVersions);
}

/// A call, kept by its coroutine and by the table until it ended.
struct Session::Running {
    Running(json::value request, const Tool& what, std::shared_ptr<Outlet> to, json::object args,
            Workspace& workspace, Call::Report report)
        : id(std::move(request)),
          key(json::serialize(id)),
          tool(what),
          outlet(std::move(to)),
          call(std::move(args), workspace, std::move(report)) {}

    json::value id;
    std::string key;
    const Tool& tool;
    std::shared_ptr<Outlet> outlet;
    Call call;
    std::shared_ptr<asio::cancellation_signal> stop;
};

Session::Session(asio::any_io_executor executor, const ToolTable& tools, sdk::Connection server,
                 WorkspaceLimits limits, std::size_t max_calls)
    : executor_(executor),
      tools_(tools),
      workspace_(std::move(server), limits),
      max_calls_(max_calls),
      ended_(std::move(executor)) {}

Session::~Session() = default;

void Session::take(const Received& received, const std::shared_ptr<Outlet>& outlet) {
    if (const auto* malformed = std::get_if<Malformed>(&received)) {
        outlet->reply(error_text(malformed->id, malformed->code, malformed->message));
        return;
    }
    const auto& message = std::get<Message>(received);
    switch (message.kind) {
        case Message::Kind::request: take_request(message, outlet); break;
        case Message::Kind::notification: take_notification(message); break;
        case Message::Kind::response: break;  // nothing is ever asked of clients
    }
}

void Session::take_request(const Message& message, const std::shared_ptr<Outlet>& outlet) {
    const std::string& method = message.method;
    if (method == "initialize") {
        initialize(message, *outlet);
    } else if (method == "ping") {
        outlet->reply(result_text(message.id, {}));
    } else if (version_.empty()) {
        outlet->reply(error_text(message.id, kInvalidRequest, "initialize comes first"));
    } else if (method == "tools/list") {
        const json::value* cursor = json::find(message.params, "cursor");
        outlet->reply(cursor ? error_text(message.id, kInvalidParams,
                                          "cursor: unknown; the list of tools has one page")
                             : result_text(message.id, tools_.list()));
    } else if (method == "tools/call") {
        call_tool(message, outlet);
    } else {
        outlet->reply(error_text(message.id, kMethodNotFound, "unknown method: " + method));
    }
}

void Session::take_notification(const Message& message) {
    if (message.method != "notifications/cancelled") return;
    const json::value* id = json::find(message.params, "requestId");
    if (id == nullptr) return;
    auto found = calls_.find(json::serialize(*id));
    if (found == calls_.end()) return;
    auto running = found->second;
    if (!running->call.cancel()) running->stop->emit(asio::cancellation_type::terminal);
}

void Session::initialize(const Message& message, Outlet& outlet) {
    if (!version_.empty()) {
        outlet.reply(error_text(message.id, kInvalidRequest, "the session is initialized already"));
        return;
    }
    auto wanted = json::get_string(message.params, "protocolVersion");
    if (!wanted || !wanted->has_value()) {
        json::array supported;
        for (std::string_view version : kProtocolVersions)
            supported.emplace_back(version);
        json::object data;
        data["supported"] = std::move(supported);
        outlet.reply(error_text(message.id, kInvalidParams, "protocolVersion: expected a string",
                                std::move(data)));
        return;
    }
    version_ = is_protocol_version(**wanted) ? **wanted : std::string(kProtocolVersions[0]);
    json::object tools;
    tools["listChanged"] = false;
    json::object capabilities;
    capabilities["tools"] = std::move(tools);
    json::object info;
    info["name"] = kServerName;
    info["title"] = "OpenSandbox";
    info["version"] = kVersion;
    json::object result;
    result["protocolVersion"] = version_;
    result["capabilities"] = std::move(capabilities);
    result["serverInfo"] = std::move(info);
    result["instructions"] = kInstructions;
    outlet.reply(result_text(message.id, std::move(result)));
}

void Session::call_tool(const Message& message, const std::shared_ptr<Outlet>& outlet) {
    const auto refuse = [&](int code, const std::string& why) {
        outlet->reply(error_text(message.id, code, why));
    };
    auto name = json::get_string(message.params, "name");
    if (!name || !name->has_value()) return refuse(kInvalidParams, "name: expected a string");
    const Tool* tool = tools_.find(**name);
    if (tool == nullptr) return refuse(kInvalidParams, "unknown tool: " + **name);
    const json::value* given = json::find(message.params, "arguments");
    if (given != nullptr && !given->is_object()) {
        return refuse(kInvalidParams, "arguments: expected an object");
    }
    if (calls_.contains(json::serialize(message.id))) {
        return refuse(kInvalidRequest, "a call with this id is under way");
    }
    if (calls_.size() >= max_calls_) {
        return refuse(kRefused, "too many calls at once: at most " + std::to_string(max_calls_));
    }
    json::object arguments = given ? given->get_object() : json::object();
    // The client's model made the arguments and can mend them, so it has to see what is wrong.
    if (auto problem = schema::problem(arguments, tool->input)) {
        outlet->reply(result_text(message.id, failure(*problem)));
        return;
    }
    Call::Report report;
    if (auto token = progress_token(message.params)) {
        report = [token = *token, to = outlet](double done, std::optional<double> total,
                                               const std::string& text) {
            json::object params;
            params["progressToken"] = token;
            params["progress"] = done;
            if (total) params["total"] = *total;
            if (!text.empty()) params["message"] = text;
            to->notify(notification_text("notifications/progress", std::move(params)));
        };
    }
    auto running = std::make_shared<Running>(message.id, *tool, outlet, std::move(arguments),
                                             workspace_, std::move(report));
    calls_.emplace(running->key, running);
    running->stop = net::spawn_cancellable(executor_, run(running), "tool call");
}

Awaitable<void> Session::run(std::shared_ptr<Running> running) {
    auto self = shared_from_this();
    json::object result;
    try {
        ToolResult outcome = co_await running->tool.run(running->call);
        result = outcome ? success(std::move(*outcome)) : failure(sentence(outcome.error()));
    } catch (const boost::system::system_error& thrown) {
        // Giving a call up unwinds it; then nobody waits for this result.
        result = failure(std::string("internal failure: ") + thrown.what());
    } catch (const std::exception& thrown) {
        log::error("a tool failed",
                   {{"tool", running->tool.name}, {"error", std::string(thrown.what())}});
        result = failure(std::string("internal failure: ") + thrown.what());
    }
    if (running->call.cancelled()) {
        running->outlet->abandon();
    } else {
        running->outlet->reply(result_text(running->id, std::move(result)));
    }
    end(*running);
}

void Session::end(const Running& running) {
    calls_.erase(running.key);
    ended_.notify();
}

void Session::cancel_all() {
    const auto calls = calls_;
    for (const auto& [key, running] : calls) {
        if (!running->call.cancel()) running->stop->emit(asio::cancellation_type::terminal);
    }
}

Awaitable<bool> Session::idle_within(std::chrono::milliseconds limit) {
    auto self = shared_from_this();
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!calls_.empty()) {
        const auto left = end - std::chrono::steady_clock::now();
        if (left.count() <= 0 || !co_await ended_.wait_for(left)) break;
    }
    const bool idle = calls_.empty();
    co_return idle;
}

}  // namespace opensandbox::mcp
