#include "runtime/docker/engine/log_decoder.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

// The same bytes whole and one by one must give the same text.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace opensandbox::runtime::docker;
    std::string_view stream(reinterpret_cast<const char*>(data), size);
    auto decode = [stream](std::size_t piece) {
        LogFrameDecoder decoder;
        NewestBytes text(4096);
        auto keep = [&text](LogFrameDecoder::Source, std::string_view bytes) {
            text.append(bytes);
        };
        for (std::size_t at = 0; at < stream.size(); at += piece) {
            auto fed = decoder.feed(stream.substr(at, piece), keep);
            if (!fed) break;
        }
        return text.take();
    };
    if (size > 0 && decode(size) != decode(1)) std::abort();
    return 0;
}
