#include "mcp/tools/execution.hpp"

#include "mcp/output_pages.hpp"
#include "mcp/tools/describe.hpp"
#include "mcp/workspace.hpp"
#include "net/task.hpp"

namespace opensandbox::mcp {

namespace {

constexpr std::size_t kLongestLine = 200;
constexpr std::size_t kSmallestOutput = 1;

/// The last line of what came, for a glance.
std::string last_line_of(std::string_view text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r'))
        text.remove_suffix(1);
    text = text.substr(text.find_last_of('\n') + 1);
    return std::string(text.substr(0, fitting(text, kLongestLine)));
}

json::value describe_error(const sdk::Event& event) {
    json::array trace;
    for (const std::string& line : event.error.traceback)
        trace.emplace_back(line);
    json::object out;
    out["name"] = event.error.name;
    out["value"] = event.error.value;
    out["timestamp"] = event.timestamp;
    out["traceback"] = std::move(trace);
    return out;
}

json::value describe_end(const sdk::Event& event) {
    json::object out;
    out["timestamp"] = event.timestamp;
    out["execution_time_in_millis"] = event.execution_time;
    return out;
}

std::size_t shown_bytes(const Call& call) {
    const auto standard = static_cast<std::int64_t>(call.workspace().limits().output);
    return static_cast<std::size_t>(call.integer("max_output_bytes", standard));
}

}  // namespace

void OutputRecord::write(Stream& stream, const sdk::Event& event, bool is_error) const {
    const std::string& text = event.text;
    const bool whole_so_far = stream.shown == stream.total;
    stream.total += text.size();
    stream.kept.append(text, 0, kept_ - std::min(kept_, stream.kept.size()));
    if (!whole_so_far || stream.shown >= shown_) return;
    const std::size_t room = shown_ - stream.shown;
    // A first character is always shown, so that every answer gets on.
    if (stream.shown > 0 && fitting(text, room) > room) return;
    const std::string_view piece = std::string_view(text).substr(0, fitting(text, room));
    stream.shown += piece.size();
    if (stream.messages.empty()) {
        json::object message;
        message["text"] = piece;
        message["timestamp"] = event.timestamp;
        message["is_error"] = is_error;
        stream.messages.emplace_back(std::move(message));
    } else {
        stream.messages.back().as_object()["text"].as_string().append(piece);
    }
}

void OutputRecord::add_results(const sdk::Event& event) {
    json::object result;
    for (const auto& [type, content] : event.results) {
        if (content.size() <= shown_ - std::min(shown_, result_bytes_)) {
            result_bytes_ += content.size();
            result[type] = content;
            continue;
        }
        // Half a picture is of no use.
        json::object missing;
        missing["type"] = type;
        missing["bytes"] = content.size();
        left_out_.emplace_back(std::move(missing));
    }
    if (!result.empty()) results_.emplace_back(std::move(result));
}

void OutputRecord::take(const sdk::Event& event) {
    switch (event.type) {
        case sdk::EventType::init: id_ = event.text; break;
        case sdk::EventType::standard_output: write(standard_, event, false); break;
        case sdk::EventType::standard_error: write(error_, event, true); break;
        case sdk::EventType::execution_count: count_ = event.execution_count; break;
        case sdk::EventType::result: add_results(event); break;
        case sdk::EventType::error: problem_ = describe_error(event); break;
        case sdk::EventType::execution_complete: complete_ = describe_end(event); break;
        default: return;
    }
    if (!event.text.empty() && event.type != sdk::EventType::init) {
        last_line_ = last_line_of(event.text);
    }
}

json::value OutputRecord::cursor_of(const Stream& stream) {
    return stream.cut() ? json::value(stream.shown) : json::value();
}

json::object OutputRecord::document(const sdk::Execution& execution) const {
    json::object logs;
    logs["stdout"] = standard_.messages;
    logs["stderr"] = error_.messages;
    json::object out = started_document(id_);
    if (execution.exit_code) out["exit_code"] = *execution.exit_code;
    out["error"] = problem_;
    out["execution_count"] = count_;
    out["result"] = results_;
    if (!left_out_.empty()) out["results_left_out"] = left_out_;
    out["complete"] = complete_;
    out["logs"] = std::move(logs);
    out["truncated"] = truncated();
    out["stdout_cursor"] = cursor_of(standard_);
    out["stderr_cursor"] = cursor_of(error_);
    return out;
}

json::object started_document(std::string_view id) {
    json::object logs;
    logs["stdout"] = json::array();
    logs["stderr"] = json::array();
    json::object out;
    out["id"] = id.empty() ? json::value() : json::value(id);
    out["exit_code"] = nullptr;
    out["error"] = nullptr;
    out["complete"] = nullptr;
    out["logs"] = std::move(logs);
    out["execution_count"] = nullptr;
    out["result"] = json::array();
    out["truncated"] = false;
    out["stdout_cursor"] = nullptr;
    out["stderr_cursor"] = nullptr;
    return out;
}

Awaitable<ToolResult> follow(Call& call, sdk::EventStream stream,
                             std::function<Awaitable<void>(std::string id)> interrupt) {
    const std::size_t shown =
        std::clamp(shown_bytes(call), kSmallestOutput, std::size_t{kLargestOutput});
    Workspace& workspace = call.workspace();
    OutputRecord record(shown, std::max(workspace.outputs().per_stream(), shown));
    sdk::Execution execution;
    bool finished = false;
    bool interrupting = false;
    const auto executor = workspace.server().executor();
    // The stream goes on until the command is gone: then the call is over, too.
    const auto stop = [&] {
        if (interrupting || record.id().empty()) return;
        interrupting = true;
        net::spawn(executor, interrupt(record.id()), "interrupt");
    };
    call.on_cancel(stop);
    for (;;) {
        auto event = co_await stream.next();
        if (!event || !event->has_value()) {
            // What was to stop it refers to this frame.
            call.on_cancel([] {});
            if (!event) co_return event.error();
            break;
        }
        const sdk::Event& what = **event;
        record.take(what);
        finished = sdk::apply_terminal_event(what, execution) || finished;
        if (call.cancelled()) stop();
        call.progress(static_cast<double>(record.bytes()), {}, record.last_line());
    }
    if (!finished) {
        co_return sdk::Error(sdk::ErrorCode::bad_gateway,
                             "the event stream ended without saying how the command ended");
    }
    json::object out = record.document(execution);
    if (record.truncated()) {
        workspace.outputs().keep(call.text("sandbox_id"), record.id(), record.take_standard(),
                                 record.take_error());
    }
    co_return out;
}

}  // namespace opensandbox::mcp
