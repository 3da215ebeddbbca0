#pragma once

#include "base/error.hpp"

#include <linux/filter.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::agent {

/// The TOML file that --isolation-config names (execd contract 9). Defaults without one.
struct IsolationConfig {
    /// Where the uppers of overlays live, a directory for each session.
    std::string upper_root = "/var/lib/execd/isolation";
    /// Bytes that the uppers of one session may hold.
    std::uint64_t upper_max_bytes = std::uint64_t{8} << 30;
    /// Sources of binds and extra_writable lie here, links resolved.
    std::vector<std::string> allowed_writable{"/workspace", "/mnt", "/media", "/data"};
    bool hardening = true;
    /// Names such as CAP_NET_RAW that runs keep beside those of their profile.
    std::vector<std::string> keep_capabilities;
    std::uint64_t kept_capabilities = 0;  ///< the same as a set
    /// Further system calls, by name, that runs may not make.
    std::vector<std::string> denied_calls;
    bool landlock = false;

    // What a broker sets in the host's name; no file can.
    std::vector<sock_filter> filter;  ///< of system calls, in place of `denied_calls`
    std::uint64_t capabilities = ~std::uint64_t{0};  ///< the most that runs can keep
    [[nodiscard]] bool brokered() const { return !filter.empty(); }

    /// `invalid_argument` says what is wrong; unknown members are ignored.
    static Result<IsolationConfig> parse(std::string_view text, std::string_view source);
    /// At most 1 MiB; an empty path gives the defaults.
    static Result<IsolationConfig> load(const std::string& path);
};

/// The number of a capability ("CAP_CHOWN" or "chown"); `invalid_argument` when unknown. Pure.
Result<int> capability_number(std::string_view name);

}  // namespace opensandbox::agent
