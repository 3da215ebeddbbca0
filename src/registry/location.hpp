#pragma once

#include "image/reference.hpp"

#include <cstdint>
#include <string>

/// Images of registries that speak the OCI distribution protocol (version 2 of Docker's).
namespace opensandbox::registry {

/// Where an image lies.
struct Location {
    std::string registry;    ///< as people name it: "docker.io", "registry.example:5000"
    std::string host;        ///< that answers for it; an IPv6 address without brackets
    std::uint16_t port = 0;  ///< 0: the scheme's own
    std::string repository;  ///< "library/python"
    std::string reference;   ///< tag or "sha256:…"
    bool loopback = false;   ///< the host is this machine

    /// "registry/repository".
    [[nodiscard]] std::string source() const { return registry + "/" + repository; }
};

/// Names without a registry are of docker.io, those there without a slash of its "library". Pure.
/// `invalid_argument` for "host", which is in no registry.
Result<Location> locate(const image::Reference& reference);

/// A registry by itself, as `login` names it; "https://" in front and a path behind are dropped,
/// the old names of docker.io understood. `invalid_argument`.
Result<Location> locate_registry(std::string_view name);

/// "localhost", 127.0.0.0/8 or ::1.
bool is_loopback(std::string_view host);

}  // namespace opensandbox::registry
