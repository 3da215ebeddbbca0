#pragma once

#include "base/error.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace opensandbox::agent {

/// Walks a directory tree without following links: children directly after their parent, each
/// directory sorted by name, the root left out (execd contract 6.5, 6.6). Entries that vanish and
/// directories that cannot be read are passed over. Holds the names of the directories on the way
/// only, and no descriptors between calls.
class TreeWalk {
  public:
    struct Entry {
        std::string path;
        std::string_view name;  ///< the last part of `path`
        bool directory = false;
    };

    /// `depth` levels below `root`; 0 finds nothing.
    TreeWalk(std::string root, std::size_t depth);

    /// The next entry; empty at the end. Valid until the next call.
    const Entry* next();

  private:
    struct Child {
        std::string name;
        bool directory = false;
    };
    struct Level {
        std::string path;
        std::vector<Child> children;
        std::size_t next = 0;
    };
    void enter(std::string path);

    std::size_t depth_;
    std::vector<Level> levels_;
    Entry entry_;
};

}  // namespace opensandbox::agent
