#include "cli/skills/marked_block.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

/// A block that is put into any text of somebody else is there then, and can be taken out again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace opensandbox::cli;
    constexpr std::string_view kMarker = "opensandbox-x";
    std::string_view text(reinterpret_cast<const char*>(data), size);
    auto before = has_block(text, kMarker);
    auto with = with_block(text, kMarker, "what it says\n");
    if (before.has_value() != with.has_value()) std::abort();
    if (!with) return 0;
    auto there = has_block(*with, kMarker);
    if (!there || !*there) std::abort();
    auto without = without_block(*with, kMarker);
    if (!without || !*without) std::abort();
    auto left = has_block(**without, kMarker);
    if (!left || *left) std::abort();
    return 0;
}
