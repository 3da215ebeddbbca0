#include "sdk/config_file.hpp"
#include "sdk/retry.hpp"
#include "sdk/route.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

/// Any text is where a server or an agent is, or is refused; and so with a time to come back and
/// the configuration of a client.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace opensandbox::sdk;
    std::string_view text(reinterpret_cast<const char*>(data), size);
    if (auto route = parse_route(text, "http")) {
        if (route->origin.host.empty() || route->origin.port == 0) std::abort();
        if (!route->prefix.empty() && !route->prefix.starts_with('/')) std::abort();
        if (route->prefix.find_first_of("\r\n ") != std::string::npos) std::abort();
    }
    auto pause = parse_retry_after(text, std::chrono::sys_seconds());
    if (pause && pause->count() < 0) std::abort();
    auto file = parse_config_file(text, "config.toml");
    if (!file && file.error().message().empty()) std::abort();
    return 0;
}
