#include "egress/role/request_environment.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

/// Any value of the variables that a request may set is taken or refused.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace opensandbox;
    std::string_view text(reinterpret_cast<const char*>(data), size);
    const std::size_t line = std::min(text.find('\n'), text.size());
    const std::string name = "OPENSANDBOX_EGRESS_" + std::string(text.substr(0, line));
    const std::string value(text.substr(std::min(line + 1, text.size())));
    auto parsed = egress::parse_request_environment({{name, value}});
    if (!parsed && parsed.error().message().empty()) std::abort();
    return 0;
}
