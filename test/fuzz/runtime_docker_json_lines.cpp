#include "runtime/docker/engine/decode.hpp"
#include "runtime/docker/engine/line_stream.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

// The first byte sets the size of the pieces in which the rest arrives.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace opensandbox;
    if (size == 0) return 0;
    std::size_t piece = data[0] + std::size_t(1);
    std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    constexpr std::size_t kMaxLine = 4096;
    runtime::docker::JsonLineSplitter lines(kMaxLine);
    for (std::size_t at = 0; at < text.size(); at += piece) {
        lines.feed(text.substr(at, piece));
        while (true) {
            auto line = lines.next();
            if (!line) return 0;
            if (!*line) break;
            if ((*line)->size() > kMaxLine) std::abort();
            auto document = json::parse(**line);
            if (!document) continue;
            (void)runtime::docker::decode_event(*document);
            (void)runtime::docker::decode_pull_line(*document);
        }
    }
    return 0;
}
