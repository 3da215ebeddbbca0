#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace opensandbox::runtime::native {

/// Whom an image wants its processes to be.
struct SandboxUser {
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;
    std::string home = "/root";
};

/// Reads "uid[:gid]", "name[:group]" or a mix, as image configs have it; empty means root.
/// `passwd` and `group` are the texts of the image's files. A number needs no entry; its group is
/// then 0 and its home "/". not_found names what has no entry, invalid_argument what is no id of
/// the sandbox (0 to 65535).
Result<SandboxUser> resolve_user(std::string_view user, std::string_view passwd,
                                 std::string_view group);

}  // namespace opensandbox::runtime::native
