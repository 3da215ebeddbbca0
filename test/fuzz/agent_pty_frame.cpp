// Feeds bytes as a terminal client's frames: binary and JSON.
#include "agent/pty/frames.hpp"

#include <cstdint>
#include <cstdlib>

using namespace opensandbox;
using Kind = agent::pty::Request::Kind;

namespace {

void check(const agent::pty::Request& request) {
    if (request.kind == Kind::input && request.data.empty()) std::abort();
    bool sized = request.columns > 0 && request.rows > 0;
    if ((request.kind == Kind::resize) != sized) std::abort();
    if ((request.kind == Kind::signal) != (request.signal > 0)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string bytes(reinterpret_cast<const char*>(data), size);
    check(agent::pty::parse_text(bytes));
    check(agent::pty::parse_binary(std::move(bytes)));
    return 0;
}
