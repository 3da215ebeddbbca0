#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace opensandbox::imagebuild {

/// Whom a RUN is.
struct BuildUser {
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;
    std::string home = "/root";
};

/// Reads a USER, "name[:group]", "uid[:gid]" or a mix, with the texts of the image's passwd and
/// group files; empty means root. A number needs no entry: its group is then 0, its home "/".
/// `not_found` names what has no entry. Pure.
Result<BuildUser> resolve_user(std::string_view user, std::string_view passwd,
                               std::string_view group);

}  // namespace opensandbox::imagebuild
