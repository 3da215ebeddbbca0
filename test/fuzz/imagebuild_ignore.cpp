#include "imagebuild/ignore.hpp"

#include <cstdint>

/// The first line is a path, the rest are rules.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto end = text.find('\n');
    if (end == std::string_view::npos) return 0;
    auto path = opensandbox::imagebuild::clean_path(text.substr(0, end));
    auto rules = opensandbox::imagebuild::IgnoreRules::parse(text.substr(end + 1), ".dockerignore");
    if (path && rules) static_cast<void>(rules->ignores(*path));
    return 0;
}
