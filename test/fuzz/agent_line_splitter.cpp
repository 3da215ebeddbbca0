#include "agent/stream/line_splitter.hpp"
#include "base/json_string.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

using opensandbox::agent::LineForm;
using opensandbox::agent::LineSplitter;

/// Any bytes in any pieces: the exact form loses and invents nothing, and no text passes the limit.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    std::size_t step = 1 + data[0] % 61;
    std::size_t limit = 8 + data[1] % 64;
    std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
    for (LineForm form : {LineForm::exact, LineForm::stripped}) {
        LineSplitter splitter(form, limit);
        std::string joined;
        auto emit = [&](std::string_view text) {
            if (text.empty() || text.size() > limit) std::abort();
            joined += text;
            std::string json;
            opensandbox::append_json_string(json, text);
            if (json.size() < 2) std::abort();
        };
        for (std::size_t at = 0; at < bytes.size(); at += step) {
            splitter.feed(bytes.substr(at, step), emit);
            if (at % 7 == 3) splitter.flush_idle(emit);
        }
        splitter.finish(emit);
        if (form == LineForm::exact && joined != bytes) std::abort();
    }
    return 0;
}
