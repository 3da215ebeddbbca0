#include "runtime/docker/engine/address.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

// The first byte sets which companions of DOCKER_HOST are there.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace opensandbox::runtime::docker;
    if (size == 0) return 0;
    EngineEnvironment environment;
    environment.docker_host.assign(reinterpret_cast<const char*>(data) + 1, size - 1);
    if ((data[0] & 1U) != 0) environment.docker_tls_verify = "1";
    if ((data[0] & 2U) != 0) environment.docker_cert_path = "/certs";
    auto address = parse_engine_address(environment, [](const std::string&) { return true; });
    if (!address) return 0;
    bool named = address->socket_path.empty() ? !address->host.empty() && address->port != 0
                                              : address->socket_path.front() == '/';
    if (!named || address->text.empty()) std::abort();
    return 0;
}
