#pragma once

#include <string_view>

/// Why TLS is intercepted or not where credentials decide it (interception mode credential-bound).
namespace opensandbox::egress::selection {

inline constexpr std::string_view kEch = "ech";
inline constexpr std::string_view kNoSni = "no_sni";
inline constexpr std::string_view kStaticIgnore = "static_ignore";
inline constexpr std::string_view kNoBindingHost = "no_binding_host";
inline constexpr std::string_view kBindingHost = "binding_host";
inline constexpr std::string_view kRegistryExhausted = "registry_exhausted";
inline constexpr std::string_view kBootstrapping = "bootstrapping";

}  // namespace opensandbox::egress::selection
