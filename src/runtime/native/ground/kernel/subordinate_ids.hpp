#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace opensandbox::runtime::native {

/// Host ids in a row.
struct IdRange {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
};

/// The largest range that the text of /etc/subuid or /etc/subgid gives to a user, by name or
/// number; empty when there is none. Lines that are no entries are passed over.
IdRange subordinate_range(std::string_view text, std::string_view user, std::uint32_t id);

/// The name that the text of /etc/passwd gives to an id; the number when it gives none.
std::string user_name(std::string_view passwd, std::uint32_t id);

}  // namespace opensandbox::runtime::native
