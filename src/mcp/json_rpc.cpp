#include "mcp/json_rpc.hpp"

namespace opensandbox::mcp {

namespace {

constexpr std::string_view kJsonRpcVersion = "2.0";

bool is_id(const json::value& id) {
    return id.is_string() || id.is_int64() || id.is_uint64() || id.is_double();
}

Malformed malformed(json::value id, std::string message) {
    return {std::move(id), kInvalidRequest, std::move(message)};
}

Received parse_call(const json::object& from, json::value id, bool has_id) {
    const json::value& method = from.at("method");
    if (!method.is_string()) return malformed(std::move(id), "method: expected a string");
    Message message;
    message.kind = has_id ? Message::Kind::request : Message::Kind::notification;
    message.id = std::move(id);
    message.method = std::string(method.get_string());
    if (const json::value* params = from.if_contains("params")) {
        if (params->is_object()) {
            message.params = params->get_object();
        } else if (!params->is_null()) {
            return Malformed{message.id, kInvalidParams, "params: expected an object"};
        }
    }
    return message;
}

Received parse_message(const json::value& from) {
    if (!from.is_object()) return malformed(nullptr, "a message is a JSON object");
    const json::object& object = from.get_object();
    const json::value* id = object.if_contains("id");
    const bool usable_id = id != nullptr && is_id(*id);
    const json::value kept = usable_id ? *id : json::value();
    const json::value* version = object.if_contains("jsonrpc");
    if (version == nullptr || !version->is_string() || version->get_string() != kJsonRpcVersion) {
        return malformed(kept, "jsonrpc: expected \"2.0\"");
    }
    if (id != nullptr && !usable_id && object.contains("method")) {
        return malformed(nullptr, "id: expected a string or a number");
    }
    if (object.contains("method")) return parse_call(object, kept, id != nullptr);
    if (object.contains("result") || object.contains("error")) {
        Message message;
        message.kind = Message::Kind::response;
        message.id = kept;
        return message;
    }
    return malformed(kept, "neither method, nor result, nor error is there");
}

json::object envelope() {
    json::object out;
    out["jsonrpc"] = kJsonRpcVersion;
    return out;
}

}  // namespace

Payload parse_payload(std::string_view text) {
    Payload payload;
    auto document = json::parse(text);
    if (!document) {
        payload.items.emplace_back(Malformed{nullptr, kParseError, document.error().message()});
        return payload;
    }
    if (!document->is_array()) {
        payload.items.push_back(parse_message(*document));
        return payload;
    }
    const json::array& array = document->get_array();
    if (array.empty() || array.size() > kMaxBatch) {
        payload.items.emplace_back(
            malformed(nullptr, "a batch has 1 to " + std::to_string(kMaxBatch) + " messages"));
        return payload;
    }
    payload.batch = true;
    for (const json::value& item : array)
        payload.items.push_back(parse_message(item));
    return payload;
}

std::string result_text(const json::value& id, json::object result) {
    json::object out = envelope();
    out["id"] = id;
    out["result"] = std::move(result);
    return json::serialize(out);
}

std::string error_text(const json::value& id, int code, std::string_view message,
                       json::value data) {
    json::object error;
    error["code"] = code;
    error["message"] = message;
    if (!data.is_null()) error["data"] = std::move(data);
    json::object out = envelope();
    out["id"] = id;
    out["error"] = std::move(error);
    return json::serialize(out);
}

std::string notification_text(std::string_view method, json::object params) {
    json::object out = envelope();
    out["method"] = method;
    out["params"] = std::move(params);
    return json::serialize(out);
}

}  // namespace opensandbox::mcp
