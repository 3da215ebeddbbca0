#include "json/document.hpp"
#include "model/field_rule.hpp"
#include "model/resource_quantity.hpp"
#include "model/timestamp.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

/// Scalars that clients write: what is accepted is in range, and text is always rendered as JSON.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace opensandbox;
    std::string_view text(reinterpret_cast<const char*>(data), size);
    std::string why;
    auto at = model::parse_timestamp(text, why);
    if (at ? *at > model::latest_timestamp() + std::chrono::hours(25) : why.empty()) std::abort();
    if (at) (void)to_rfc3339(*at);
    (void)model::lax_integer(text);
    (void)model::lax_boolean(text);
    if (auto cores = model::parse_cpu(text); cores && !(*cores > 0)) std::abort();
    if (auto bytes = model::parse_memory(text); bytes && *bytes == 0) std::abort();
    (void)model::parse_gpu(text);
    if (!json::parse(model::json_string(text))) std::abort();
    return 0;
}
