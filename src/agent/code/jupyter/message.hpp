#pragma once

#include "base/error.hpp"
#include "json/document.hpp"

#include <string>
#include <string_view>

namespace opensandbox::agent::jupyter {

/// A message from a kernel, as far as it matters to a run (Jupyter messaging 5.3).
struct Message {
    std::string type;       ///< "stream", "execute_reply", …
    std::string parent_id;  ///< msg_id of the request that it belongs to; may be empty
    json::object content;
};

/// Reads a text frame of a kernel's WebSocket: one JSON object. `protocol` when it is none or has
/// no message type. Pure.
Result<Message> parse_message(std::string_view text);

/// Reads a binary frame: a count, that many offsets (32 bits, big-endian), the JSON object, then
/// buffers, which are dropped. Pure.
Result<Message> parse_binary_message(std::string_view bytes);

/// The text frame that asks a kernel to execute code (execd contract 5.2).
std::string execute_request(std::string_view message_id, std::string_view session_id,
                            std::string_view code);

/// The `results` of a result event: the MIME map of `content.data` with text/plain renamed to text,
/// as JSON; empty when there is none (execd contract 5.3).
std::string mime_results(const json::object& content);

}  // namespace opensandbox::agent::jupyter
