#include "image/entry_path.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

/// Any name of an archive's entry stays below the root, or is refused.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace opensandbox;
    std::string_view text(reinterpret_cast<const char*>(data), size);
    auto path = image::parse_entry_path(text);
    if (!path) return 0;
    std::string full = path->full();
    if (full.starts_with('/') || full.size() > 4095) std::abort();
    if (("/" + full + "/").find("/../") != std::string::npos) std::abort();
    if (path->name.find('/') != std::string::npos || path->name.size() > 255) std::abort();
    if (full.find('\0') != std::string::npos) std::abort();
    if (!path->name.empty() && image::whiteout_of(path->name) == image::Whiteout::file)
        (void)image::whiteout_target(path->name);
    return 0;
}
