#pragma once

#include "opensandbox/commands.hpp"

#include <optional>
#include <string_view>

namespace opensandbox::sdk::wire {

/// Reads an event of the plainest and by far most frequent form, `{"type":"stdout","text":"…",
/// "timestamp":1}` in ASCII, many times faster than a JSON document. Empty when the frame is
/// anything else; decode_event() then says what it is.
std::optional<Event> scan_output_event(std::string_view frame);

}  // namespace opensandbox::sdk::wire
