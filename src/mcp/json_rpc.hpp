#pragma once

#include "json/document.hpp"

#include <string>
#include <string_view>
#include <variant>
#include <vector>

/// The messages of the Model Context Protocol: JSON-RPC 2.0 requests, notifications, responses.
namespace opensandbox::mcp {

// Codes of JSON-RPC 2.0, and of ours from its range for servers.
inline constexpr int kParseError = -32700;
inline constexpr int kInvalidRequest = -32600;
inline constexpr int kMethodNotFound = -32601;
inline constexpr int kInvalidParams = -32602;
inline constexpr int kInternalError = -32603;
inline constexpr int kRefused = -32000;
inline constexpr int kSessionNotFound = -32001;

struct Message {
    enum class Kind : unsigned char { request, notification, response };
    Kind kind = Kind::notification;
    json::value id;  ///< string or number; null for notifications
    std::string method;
    json::object params;
};

/// A message that is none: what to answer.
struct Malformed {
    json::value id;  ///< of the request, as far as it could be read
    int code = kInvalidRequest;
    std::string message;
};

using Received = std::variant<Message, Malformed>;

/// One payload of a transport: a message, or several in an array.
struct Payload {
    std::vector<Received> items;
    bool batch = false;
};

/// At most this many messages in one array.
inline constexpr std::size_t kMaxBatch = 100;

/// Never fails: what cannot be read is a Malformed.
Payload parse_payload(std::string_view text);

std::string result_text(const json::value& id, json::object result);
std::string error_text(const json::value& id, int code, std::string_view message,
                       json::value data = nullptr);
std::string notification_text(std::string_view method, json::object params);

}  // namespace opensandbox::mcp
