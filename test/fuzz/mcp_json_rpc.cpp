#include "mcp/json_rpc.hpp"
#include "mcp/stdio_transport.hpp"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using namespace opensandbox::mcp;

constexpr std::size_t kLimit = 256;

/// The lines of an input that comes in pieces of `step` bytes.
std::vector<std::string> lines_of(std::string_view bytes, std::size_t step) {
    LineReader reader(kLimit);
    std::vector<std::string> lines;
    std::string line;
    for (std::size_t at = 0; at < bytes.size(); at += step) {
        reader.feed(bytes.substr(at, step));
        for (;;) {
            const auto found = reader.next(line);
            if (found == LineReader::Found::nothing) break;
            lines.push_back(found == LineReader::Found::line ? line : "!");
        }
    }
    return lines;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::size_t step = data[0] % 16 + 1;
    const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
    // How the bytes are cut must not matter.
    if (lines_of(bytes, bytes.size() + 1) != lines_of(bytes, step)) std::abort();
    const Payload payload = parse_payload(bytes);
    if (payload.items.empty()) std::abort();
    for (const Received& item : payload.items) {
        const auto* message = std::get_if<Message>(&item);
        if (message == nullptr) continue;
        // What was understood can be answered, and the answer is understood.
        const std::string answer = result_text(message->id, {});
        if (!std::holds_alternative<Message>(parse_payload(answer).items.front())) std::abort();
    }
    return 0;
}
