#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace opensandbox::runtime::native {

/// What went over a sandbox's link, in bytes, as the sandbox sees it.
struct LinkCounters {
    std::optional<std::uint64_t> received;
    std::optional<std::uint64_t> sent;
};

/// Of the host's end of that name; empty when there is none.
LinkCounters link_counters(const std::string& link);

}  // namespace opensandbox::runtime::native
