#include "sdk/wire_code.hpp"

#include "sdk/wire_reader.hpp"

namespace opensandbox::sdk::wire {

namespace {

constexpr char kOutput = 0x01;
constexpr char kErrorOutput = 0x02;
constexpr char kReplay = 0x03;
constexpr std::size_t kReplayHead = 9;

CodeContext context_of(ObjectReader& in) {
    CodeContext context;
    context.id = in.string("id");
    context.language = in.string("language");
    context.working_directory = in.optional_string("cwd").value_or("");
    return context;
}

Error broken(std::string_view what) {
    return {ErrorCode::protocol, "a frame of the terminal breaks its format: " + std::string(what)};
}

}  // namespace

std::string encode_code(const CodeRequest& request) {
    json::object context;
    if (!request.context_id.empty()) context["id"] = request.context_id;
    if (!request.language.empty()) context["language"] = request.language;
    json::object body;
    body["code"] = request.code;
    if (!context.empty()) body["context"] = std::move(context);
    return json::serialize(body);
}

std::string encode_code_context(const std::string& language, const std::string& directory) {
    json::object body;
    body["language"] = language;
    if (!directory.empty()) body["cwd"] = directory;
    return json::serialize(body);
}

Result<CodeContext> decode_code_context(std::string_view body) {
    auto document = parse_object(body);
    if (!document) return document.error();
    ObjectReader in(*document);
    CodeContext context = context_of(in);
    if (in.failed()) return in.error();
    return context;
}

Result<std::vector<CodeContext>> decode_code_contexts(std::string_view body) {
    auto list = parse_array(body);
    if (!list) return list.error();
    std::vector<CodeContext> contexts;
    for (const auto& item : *list) {
        if (!item.is_object()) {
            return Error(ErrorCode::protocol,
                         "the answer breaks its format: a context is no "
                         "object");
        }
        ObjectReader in(item.get_object());
        contexts.push_back(context_of(in));
        if (in.failed()) return in.error();
    }
    return contexts;
}

std::string encode_terminal(const TerminalOptions& options) {
    json::object body;
    if (!options.working_directory.empty()) body["cwd"] = options.working_directory;
    if (!options.command.empty()) body["command"] = options.command;
    return json::serialize(body);
}

Result<std::string> decode_terminal_id(std::string_view body) {
    auto document = parse_object(body);
    if (!document) return document.error();
    ObjectReader in(*document);
    std::string id = in.string("session_id");
    if (in.failed()) return in.error();
    return id;
}

Result<TerminalInfo> decode_terminal(std::string_view body) {
    auto document = parse_object(body);
    if (!document) return document.error();
    ObjectReader in(*document);
    TerminalInfo info;
    info.session_id = in.string("session_id");
    info.running = in.boolean("running");
    info.launch_attempted = in.optional_boolean("launch_attempted").value_or(false);
    info.launch_failed = in.optional_boolean("launch_failed").value_or(false);
    info.output_offset = static_cast<std::uint64_t>(in.integer("output_offset"));
    if (in.failed()) return in.error();
    return info;
}

std::string encode_resize(std::uint16_t columns, std::uint16_t rows) {
    json::object body;
    body["type"] = "resize";
    body["cols"] = columns;
    body["rows"] = rows;
    return json::serialize(body);
}

std::string encode_signal(std::string_view name) {
    json::object body;
    body["type"] = "signal";
    body["signal"] = name;
    return json::serialize(body);
}

Result<TerminalEvent> decode_terminal_text(std::string_view frame) {
    auto document = parse_object(frame);
    if (!document) return document.error();
    ObjectReader in(*document);
    const std::string type = in.string("type");
    TerminalEvent event;
    if (type == "connected") {
        event.kind = TerminalEvent::Kind::connected;
        event.data = in.string("mode");
    } else if (type == "exit") {
        event.kind = TerminalEvent::Kind::exit;
        event.exit_code = static_cast<int>(in.integer("exit_code"));
    } else if (type == "error") {
        const std::string code = in.string("code");
        const std::string why = in.string("error");
        if (in.failed()) return in.error();
        if (code == "TAKEN_OVER") return TerminalEvent(TerminalEvent::Kind::taken_over);
        return Error(code == "INVALID_FRAME" ? ErrorCode::protocol : ErrorCode::internal, 0, code,
                     "the terminal: " + why, {});
    }
    if (in.failed()) return in.error();
    return event;
}

Result<TerminalEvent> decode_terminal_output(std::string frame, std::uint64_t& offset) {
    if (frame.empty()) return broken("it is empty");
    const char kind = frame.front();
    if (kind == kReplay) {
        if (frame.size() < kReplayHead) return broken("a replay without its offset");
        std::uint64_t from = 0;
        for (std::size_t i = 1; i < kReplayHead; ++i)
            from = from << 8 | static_cast<unsigned char>(frame[i]);
        frame.erase(0, kReplayHead);
        offset = from + frame.size();
        return TerminalEvent(TerminalEvent::Kind::output, std::move(frame));
    }
    if (kind != kOutput && kind != kErrorOutput) return TerminalEvent();
    frame.erase(0, 1);
    offset += frame.size();
    return TerminalEvent(
        kind == kOutput ? TerminalEvent::Kind::output : TerminalEvent::Kind::error_output,
        std::move(frame));
}

}  // namespace opensandbox::sdk::wire
