#include "agent/code/jupyter/message.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace jupyter = opensandbox::agent::jupyter;

/// Frames of a kernel's WebSocket, text and binary: a message with a type, or an error.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string_view bytes(reinterpret_cast<const char*>(data), size);
    for (bool binary : {false, true}) {
        auto message =
            binary ? jupyter::parse_binary_message(bytes) : jupyter::parse_message(bytes);
        if (!message) {
            if (message.error().message().empty()) std::abort();
            continue;
        }
        if (message->type.empty()) std::abort();
        std::string results = jupyter::mime_results(message->content);
        if (!results.empty() && !opensandbox::json::parse(results)) std::abort();
    }
    return 0;
}
