#pragma once

#include "doctor/facts.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::doctor {

enum class Level : std::uint8_t {
    good,     ///< all there
    off,      ///< sandboxes run, something is missing
    blocking  ///< no native sandbox can run
};

/// "ok", "off", "fail".
std::string_view to_string(Level level);

/// One thing that was looked at.
struct Finding {
    std::string name;  ///< "cgroups"
    Level level = Level::good;
    std::string found;    ///< what there is
    std::string follows;  ///< what that means for sandboxes, and what helps; may be empty
};

/// Looks at every fact, in the order in which a reader wants to know. Pure.
std::vector<Finding> examine(const HostFacts& facts);

/// Whether the native runtime can run sandboxes for this user.
bool native_can_run(const std::vector<Finding>& findings);

// The checks, one by one.
Finding check_kernel(const HostFacts& facts);
Finding check_namespaces(const HostFacts& facts);
Finding check_user_namespaces(const HostFacts& facts);
Finding check_subordinate_ids(const HostFacts& facts);
Finding check_overlay(const HostFacts& facts);
Finding check_id_shift(const HostFacts& facts);
Finding check_cgroups(const HostFacts& facts);
Finding check_pause(const HostFacts& facts);
Finding check_firewall(const HostFacts& facts);
Finding check_forwarding(const HostFacts& facts);
Finding check_ipv6(const HostFacts& facts);
Finding check_seccomp(const HostFacts& facts);
Finding check_landlock(const HostFacts& facts);
Finding check_devices(const HostFacts& facts);
Finding check_state(const HostFacts& facts);
Finding check_space(const HostFacts& facts);
Finding check_open_files(const HostFacts& facts);
Finding check_engines(const HostFacts& facts);
Finding check_gvisor(const HostFacts& facts);
Finding check_buckets(const HostFacts& facts);

}  // namespace opensandbox::doctor
