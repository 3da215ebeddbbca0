#include "agent/code/request.hpp"
#include "agent/session/request.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

/// Any JSON makes code to run or a context, or an error that says why not; so with shell sessions.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace opensandbox;
    auto document = json::parse({reinterpret_cast<const char*>(data), size});
    if (!document) return 0;
    auto code = agent::parse_code_request(*document);
    if (!code && code.error().message().empty()) std::abort();
    auto context = agent::parse_context_request(*document);
    if (!context && context.error().message().empty()) std::abort();
    auto session = agent::parse_session_request(*document);
    if (!session && session.error().message().empty()) std::abort();
    return 0;
}
