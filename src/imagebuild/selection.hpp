#pragma once

#include "imagebuild/context.hpp"

#include <string>
#include <vector>

namespace opensandbox::imagebuild {

/// One thing to copy: where it is in the context and where it goes below the destination directory
/// ("." for the directory itself).
struct Member {
    std::string source;
    std::string name;
    bool named = false;  ///< a source by itself, not only part of one
};

/// What the sources of one COPY come to.
struct Selection {
    std::vector<Member> members;  ///< directories before what is in them
    /// A single file: it may be given another name, that of the destination.
    bool single_file = false;
    /// More than one file or directory: the destination must be a directory.
    bool several = false;
};

/// Finds the sources in the context: directories stand for what is in them, wildcards for all that
/// match, links given by name for what they point to. Errors say which source and why. Pure.
Result<Selection> select(const ContextEntries& entries, const std::vector<std::string>& sources);

/// The path with symbolic links followed within the context; `not_found` when it ends nowhere.
Result<std::string> follow(const ContextEntries& entries, std::string_view path);

}  // namespace opensandbox::imagebuild
