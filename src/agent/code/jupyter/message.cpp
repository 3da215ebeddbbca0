#include "agent/code/jupyter/message.hpp"

#include "base/clock.hpp"
#include "base/json_string.hpp"

#include <cstdint>

namespace opensandbox::agent::jupyter {
namespace {

constexpr std::uint32_t kMostParts = 1024;

Error garbled(std::string what) {
    return {ErrorCode::protocol, "kernel message: " + std::move(what)};
}

std::string text_member(const json::object& from, std::string_view name) {
    const json::value* member = json::find(from, name);
    return member && member->is_string() ? std::string(member->get_string()) : std::string();
}

std::uint32_t big_endian(std::string_view bytes, std::size_t at) {
    std::uint32_t number = 0;
    for (std::size_t i = 0; i < 4; ++i)
        number = number << 8 | static_cast<unsigned char>(bytes[at + i]);
    return number;
}

}  // namespace

Result<Message> parse_message(std::string_view text) {
    Result<json::value> document = json::parse(text);
    if (!document) return garbled(document.error().message());
    if (!document->is_object()) return garbled("no object");
    json::object& whole = document->get_object();
    Message message;
    if (const json::value* header = json::find(whole, "header"); header && header->is_object()) {
        message.type = text_member(header->get_object(), "msg_type");
    }
    if (message.type.empty()) message.type = text_member(whole, "msg_type");
    if (message.type.empty()) return garbled("no type");
    const json::value* parent = json::find(whole, "parent_header");
    if (parent && parent->is_object()) {
        message.parent_id = text_member(parent->get_object(), "msg_id");
    }
    if (json::value* content = whole.if_contains("content"); content && content->is_object()) {
        message.content = std::move(content->get_object());
    }
    return message;
}

Result<Message> parse_binary_message(std::string_view bytes) {
    if (bytes.size() < 8) return garbled("too short");
    std::uint32_t parts = big_endian(bytes, 0);
    if (parts == 0 || parts > kMostParts) return garbled("a wrong number of parts");
    const std::size_t table = 4 + std::size_t{4} * parts;
    if (bytes.size() < table) return garbled("too short");
    std::size_t begin = big_endian(bytes, 4);
    std::size_t end = parts > 1 ? big_endian(bytes, 8) : bytes.size();
    if (begin < table || end < begin || end > bytes.size()) return garbled("a wrong offset");
    return parse_message(bytes.substr(begin, end - begin));
}

std::string execute_request(std::string_view message_id, std::string_view session_id,
                            std::string_view code) {
    std::string out = R"({"header":{"msg_id":)";
    append_json_string(out, message_id);
    out += R"(,"session":)";
    append_json_string(out, session_id);
    out += R"(,"username":"execd","date":)";
    append_json_string(out, to_rfc3339(now()));
    out += R"(,"msg_type":"execute_request","version":"5.3"},"parent_header":{},"metadata":{},)"
           R"("channel":"shell","buffers":[],"content":{"code":)";
    append_json_string(out, code);
    out += R"(,"silent":false,"store_history":true,"user_expressions":{},"allow_stdin":false,)"
           R"("stop_on_error":true}})";
    return out;
}

std::string mime_results(const json::object& content) {
    const json::value* data = json::find(content, "data");
    if (!data || !data->is_object() || data->get_object().empty()) return {};
    std::string out = "{";
    for (const auto& [type, value] : data->get_object()) {
        if (out.size() > 1) out += ',';
        append_json_string(out, type == "text/plain" ? "text" : std::string_view(type));
        out += ':';
        if (value.is_string()) {
            append_json_string(out, value.get_string());
        } else {
            out += json::serialize(value);
        }
    }
    return out += '}';
}

}  // namespace opensandbox::agent::jupyter
