#include "server/config/config.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

/// Any text gives a configuration within its ranges, or an error that says something.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace opensandbox;
    std::string_view text(reinterpret_cast<const char*>(data), size);
    auto config = server::parse_config(text, "fuzz");
    if (!config) {
        if (config.error().message().empty()) std::abort();
    } else if (config->pool.size > 1000 || config->pool.max < config->pool.size ||
               config->limit_concurrency < 0 || config->host.empty()) {
        std::abort();
    }
    return 0;
}
