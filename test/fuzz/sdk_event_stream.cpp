#include "sdk/event_stream.hpp"
#include "sdk/wire.hpp"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using opensandbox::sdk::EventStreamParser;

/// All frames, with the input cut into pieces of `step` bytes; an error ends the list with "!".
std::vector<std::string> frames(std::string_view bytes, std::size_t step) {
    EventStreamParser parser(4096);
    std::vector<std::string> all;
    auto drain = [&] {
        std::string_view frame;
        for (;;) {
            auto found = parser.next(frame);
            if (!found) {
                all.emplace_back("!");
                return false;
            }
            if (!*found) return true;
            all.emplace_back(frame);
        }
    };
    for (std::size_t at = 0; at < bytes.size(); at += step) {
        parser.feed(bytes.substr(at, step));
        if (!drain()) return all;
    }
    parser.finish();
    drain();
    return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::size_t step = data[0] % 16 + 1;
    std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
    const auto whole = frames(bytes, bytes.size() + 1);
    const auto pieces = frames(bytes, step);
    // How the bytes are cut must not matter. (A frame near the limit may be refused at another
    // point, so only streams without refusal are compared.)
    const bool refused =
        (!whole.empty() && whole.back() == "!") || (!pieces.empty() && pieces.back() == "!");
    if (!refused && whole != pieces) std::abort();
    for (const auto& frame : whole) {
        auto event = opensandbox::sdk::wire::decode_event(frame);
        auto any = opensandbox::sdk::wire::decode_any_event(frame);
        if (event.has_value() != any.has_value()) std::abort();
        if (event) {
            // The short cut for plain output must not change anything.
            if (event->type != any->type || event->text != any->text ||
                event->timestamp != any->timestamp) {
                std::abort();
            }
            opensandbox::sdk::Execution execution;
            opensandbox::sdk::apply_terminal_event(*event, execution);
        }
    }
    return 0;
}
