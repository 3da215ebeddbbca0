#include "agent/command/request.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

/// Any JSON makes a request that can be started, or an error that says why not.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    auto document = opensandbox::json::parse({reinterpret_cast<const char*>(data), size});
    if (!document) return 0;
    auto request = opensandbox::agent::parse_command_request(*document);
    if (!request) {
        if (request.error().message().empty()) std::abort();
        return 0;
    }
    if (request->command.empty() == request->argv.empty()) std::abort();
    if (request->timeout.count() < 0) std::abort();
    return 0;
}
