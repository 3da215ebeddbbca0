#include "base/json_string.hpp"
#include "base/log_text.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

/// Whatever others write is one line of UTF-8 without control characters in a log.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace opensandbox;
    std::string_view text(reinterpret_cast<const char*>(data), size);
    for (auto append : {log::append_log_string, log::append_log_sentence}) {
        std::string line;
        append(line, text);
        if (!is_utf8(line)) std::abort();
        for (std::size_t i = 0; i < line.size(); ++i) {
            auto byte = static_cast<unsigned char>(line[i]);
            if (byte < 0x20 || byte == 0x7f) std::abort();
            if (byte == 0xc2 && static_cast<unsigned char>(line[i + 1]) < 0xa0) std::abort();
        }
    }
    return 0;
}
