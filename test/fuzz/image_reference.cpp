// Image references: what is accepted must be canonical.
#include "image/store.hpp"

#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string_view text(reinterpret_cast<const char*>(data), size);
    auto once = opensandbox::image::normalize_reference(text);
    if (!once) return 0;
    auto twice = opensandbox::image::normalize_reference(*once);
    if (!twice || *twice != *once) std::abort();
    return 0;
}
