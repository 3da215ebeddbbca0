// The first bytes of a connection of a sandbox, whole and in pieces.
#include "egress/intercept/core/host_name.hpp"
#include "egress/intercept/tls/client_hello.hpp"

#include <cstdlib>

using namespace opensandbox::egress;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string_view bytes(reinterpret_cast<const char*>(data), size);
    ClientHelloParser whole;
    auto verdict = whole.parse(bytes);
    ClientHelloParser pieces;
    auto state = ClientHelloParser::State::incomplete;
    for (std::size_t end = 1; end <= size; ++end) {
        state = pieces.parse(bytes.substr(0, end));
        if (state != ClientHelloParser::State::incomplete) break;
    }
    using State = ClientHelloParser::State;
    // A hello that is complete early stays what it was, whatever follows it.
    if (size > 0 && (state == State::complete) != (verdict == State::complete)) std::abort();
    if (verdict == State::complete && whole.hello().server_name) {
        auto name = normal_host_name(*whole.hello().server_name);
        if (name && normal_host_name(*name) != name) std::abort();
    }
    auto authority = parse_authority(bytes);
    if (authority && authority->host.empty()) std::abort();
    return 0;
}
