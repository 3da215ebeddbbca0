#pragma once

#include "base/error.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"

#include <filesystem>
#include <string>
#include <vector>

/// pasta(1) of the package passt: gives a network namespace a link, and speaks for what comes out
/// of it through ordinary sockets of the user who runs it.
namespace opensandbox::runtime::native {

/// The link that pasta makes. Its addresses are link-local, so that sandboxes may not reach them.
inline constexpr const char* kUplinkName = "uplink";
inline constexpr std::uint32_t kUplinkMtu = 65'520;

struct PastaSettings {
    std::string program;                      ///< its path
    std::filesystem::path network_namespace;  ///< a file that stands for it
    bool ipv4 = true;                         ///< the host has a way out for it
    bool ipv6 = false;                        ///< likewise; one of both must be
    std::string tag;                          ///< of the server: makes IPv6 addresses its own
};

/// pasta in PATH or one of the usual directories. `unsupported` says what is missing: the program,
/// or a /dev/net/tun that this user can open.
Result<std::string> find_pasta();

/// Its command line: a link with addresses of ours and nothing else. No port of the host leads in,
/// and none of the namespace to the host's loopback.
std::vector<std::string> pasta_arguments(const PastaSettings& settings);

/// Starts it as a child that ends with this process. It shuts itself off (its own namespaces, an
/// empty root, a filter of system calls) before it reads a packet.
Result<ClonedChild> start_pasta(const PastaSettings& settings);

}  // namespace opensandbox::runtime::native
