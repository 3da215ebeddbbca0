#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace opensandbox::cli {

/// One end of a copy: a local path, or a path in a sandbox.
struct CopyPlace {
    std::string sandbox;  ///< empty: local
    std::string path;
    [[nodiscard]] bool remote() const { return !sandbox.empty(); }
};

/// "ID:PATH" is in a sandbox; what has a slash before its first colon, or no colon, is local. Empty
/// when the path is missing. Pure.
std::optional<CopyPlace> parse_copy_place(std::string_view text);

/// What a path is below a directory ("/a" and "/a/b/c": "b/c"). Empty when it is not below it or
/// would step out of it: what a sandbox says about its files is not to be trusted. Pure.
std::optional<std::string> path_below(std::string_view directory, std::string_view path);

/// The last part of a path, also when it ends with a slash.
std::string last_part(std::string_view path);

}  // namespace opensandbox::cli
