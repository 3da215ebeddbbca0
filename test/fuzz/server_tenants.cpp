#include "server/tenants/file_tenants.hpp"
#include "server/tenants/http_tenants.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

/// Any text is a table of tenants, an answer about one, or an error that says something.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace opensandbox;
    std::string_view text(reinterpret_cast<const char*>(data), size);
    auto table = server::parse_tenants(text, "fuzz", {});
    if (!table && table.error().message().empty()) std::abort();
    auto answer = server::parse_tenant_answer(text);
    if (answer && !server::is_namespace(answer->first)) std::abort();
    return 0;
}
