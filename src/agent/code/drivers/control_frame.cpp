#include "agent/code/drivers/control_frame.hpp"

#include "json/document.hpp"

#include <charconv>

namespace opensandbox::agent {
namespace {

/// Letter, digits of the largest size, LF.
constexpr std::size_t kMaxHeader = 10;

Error malformed(std::string_view what) {
    return {ErrorCode::protocol, "control frame: " + std::string(what)};
}

std::optional<ControlMessage::Type> type_of(std::string_view name) {
    if (name == "ready") return ControlMessage::Type::ready;
    if (name == "display") return ControlMessage::Type::display;
    if (name == "result") return ControlMessage::Type::result;
    if (name == "error") return ControlMessage::Type::error;
    if (name == "done") return ControlMessage::Type::done;
    return std::nullopt;
}

/// The contract has "text" where MIME has text/plain (5.3); it comes first.
Result<std::string> mime_of(const json::object& body) {
    const json::value* data = json::find(body, "data");
    if (!data || !data->is_object()) return malformed("data: must be an object");
    json::object out;
    if (const json::value* text = json::find(data->get_object(), "text/plain")) {
        out.emplace("text", *text);
    }
    for (const auto& [type, value] : data->get_object()) {
        if (type != "text/plain") out.emplace(type, value);
    }
    return json::serialize(json::value(std::move(out)));
}

Status take_error(const json::object& body, ControlMessage& out) {
    auto name = json::get_string(body, "ename");
    auto value = json::get_string(body, "evalue");
    auto lines = json::get_strings(body, "traceback");
    if (!name || !value || !lines) return malformed("error: wrong members");
    out.end = RunEnd(name->value_or("Error"), value->value_or(""),
                     lines->value_or(std::vector<std::string>()));
    return {};
}

}  // namespace

std::string ControlFrame::header(Kind kind, std::size_t size) {
    return static_cast<char>(kind) + std::to_string(size) + '\n';
}

Result<std::optional<ControlFrame>> ControlFrameReader::next() {
    std::size_t line = buffer_.find('\n');
    if (line == std::string::npos) {
        if (buffer_.size() > kMaxHeader) return malformed("no header");
        return std::optional<ControlFrame>();
    }
    char letter = buffer_.front();
    if (line < 2 || line > kMaxHeader || (letter != 'j' && letter != 's')) {
        return malformed("not a header");
    }
    std::size_t size = 0;
    auto [end, failure] = std::from_chars(buffer_.data() + 1, buffer_.data() + line, size);
    if (failure != std::errc() || end != buffer_.data() + line) return malformed("not a size");
    if (size > ControlFrame::kMaxPayload) return malformed("too large");
    if (buffer_.size() - line - 1 < size) return std::optional<ControlFrame>();
    ControlFrame frame(static_cast<ControlFrame::Kind>(letter), buffer_.substr(line + 1, size));
    buffer_.erase(0, line + 1 + size);
    if (buffer_.empty()) buffer_.shrink_to_fit();
    return std::optional<ControlFrame>(std::move(frame));
}

Result<ControlMessage> parse_control_message(std::string_view text) {
    Result<json::value> document = json::parse(text);
    if (!document || !document->is_object()) return malformed("not a JSON object");
    const json::object& body = document->get_object();
    auto name = json::get_string(body, "type");
    auto type = name && *name ? type_of(**name) : std::nullopt;
    if (!type) return malformed("unknown type");
    ControlMessage out;
    out.type = *type;
    auto count = json::get_integer(body, "count");
    auto leaving = json::get_bool(body, "leaving");
    if (!count || !leaving) return malformed("wrong members");
    out.count = count->value_or(0);
    out.leaving = leaving->value_or(false);
    if (out.type == ControlMessage::Type::error) {
        if (Status taken = take_error(body, out); !taken) return taken.error();
    }
    if (out.type == ControlMessage::Type::result || out.type == ControlMessage::Type::display) {
        Result<std::string> mime = mime_of(body);
        if (!mime) return mime.error();
        out.mime = std::move(*mime);
    }
    return out;
}

}  // namespace opensandbox::agent
