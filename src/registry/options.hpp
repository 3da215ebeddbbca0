#pragma once

#include "image/store.hpp"

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace opensandbox::registry {

/// When an image that a sandbox is to be made of is pulled.
enum class PullPolicy : std::uint8_t {
    missing,  ///< when the store does not have it
    never,
    always,  ///< also when the registry has another one under that name by now
};

/// How registries are talked to.
struct RegistryOptions {
    std::filesystem::path ca_file;              ///< PEM; empty: the system's roots
    std::vector<std::string> ca_hosts;          ///< "host[:port]" that ca_file is for; empty: all
    std::vector<std::string> plain_http_hosts;  ///< "host[:port]" without TLS; loopback may be, too
    std::filesystem::path credentials;          ///< file of our own logins
    std::filesystem::path docker_config;        ///< empty: not read
    PullPolicy policy = PullPolicy::missing;
    image::ImportLimits limits;

    std::chrono::milliseconds connect_timeout{10'000};
    /// Without any byte for so long a connection counts as cut.
    std::chrono::milliseconds stall_timeout{60'000};
    std::size_t transfers = 3;                   ///< blobs at once
    int attempts = 5;                            ///< of one request or blob without progress
    std::chrono::milliseconds first_delay{500};  ///< before the second attempt; then twice as long
    std::chrono::milliseconds longest_delay{60'000};  ///< also of a Retry-After that is obeyed
    std::size_t upload_chunk = std::size_t{32} << 20;
};

}  // namespace opensandbox::registry
