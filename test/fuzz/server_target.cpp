#include "server/auth.hpp"
#include "server/list_query.hpp"
#include "server/proxy/proxy_rules.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

/// Request targets: list queries, metadata filters, proxy paths.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace opensandbox;
    std::string_view text(reinterpret_cast<const char*>(data), size);
    auto parsed = server::parse_list_query(text);
    if (const auto* query = std::get_if<lifecycle::ListQuery>(&parsed)) {
        if (query->page < 1 || query->page_size < 1 || query->page_size > 200) std::abort();
    }
    (void)server::parse_metadata_filter(text);
    auto target = server::split_proxy_target(text);
    if (target.prefix + target.rest != text) std::abort();
    if (server::is_proxy_path(text) && text.find("..") != std::string_view::npos) std::abort();
    return 0;
}
