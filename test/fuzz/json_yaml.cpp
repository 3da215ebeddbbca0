#include "json/yaml.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

/// Any text is a document or an error that does not quote it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace opensandbox;
    auto document = json::parse_yaml({reinterpret_cast<const char*>(data), size});
    if (!document && document.error().message().empty()) std::abort();
    if (document && json::serialize(*document).empty()) std::abort();
    return 0;
}
