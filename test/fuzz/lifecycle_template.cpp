#include "lifecycle/pool_template.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

/// Any text is the template of a pool or is refused; a sandbox of it can be asked for.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace opensandbox;
    auto base = lifecycle::parse_template({reinterpret_cast<const char*>(data), size});
    if (!base) {
        if (base.error().message().empty()) std::abort();
        return 0;
    }
    auto request = lifecycle::apply_template(*base, model::CreateRequest());
    if (request) (void)lifecycle::fits_idle(*base, *request);
    return 0;
}
