#include "http/sdk_agent.hpp"
#include "http/url.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

/// Any text is a URL with a host and a port, or is refused; User-Agent values likewise.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace opensandbox;
    std::string_view text(reinterpret_cast<const char*>(data), size);
    // A certificate store is read for each https:// one, which is not what is tested.
    if (!text.starts_with("https")) {
        auto url = http::parse_url(text);
        if (url && (url->origin.host.empty() || url->origin.port == 0)) std::abort();
        if (url && !url->path.empty() && !url->path.starts_with('/')) std::abort();
    }
    if (auto agent = http::parse_sdk_agent(text)) {
        if (agent->language.empty() || agent->language.size() > 32) std::abort();
        if (agent->version.size() > 32) std::abort();
    }
    return 0;
}
