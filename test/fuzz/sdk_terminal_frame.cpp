#include "sdk/wire_code.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

/// Any frame of a terminal is an event or an error, and output never moves the offset back unless
/// a replay says where it begins.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace opensandbox::sdk;
    std::string text(reinterpret_cast<const char*>(data), size);
    auto told = wire::decode_terminal_text(text);
    if (!told && told.error().message().empty()) std::abort();
    constexpr std::uint64_t kBefore = 1000;
    std::uint64_t offset = kBefore;
    const bool replay = !text.empty() && text[0] == 3;
    auto output = wire::decode_terminal_output(text, offset);
    if (!output && output.error().message().empty()) std::abort();
    if (output && !replay && offset < kBefore) std::abort();
    if (output && output->data.size() > size) std::abort();
    return 0;
}
