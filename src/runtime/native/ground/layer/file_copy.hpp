#pragma once

#include "base/error.hpp"

#include <sys/stat.h>

namespace opensandbox::runtime::native {

/// Copies the content of regular files, in the cheapest way that works between two file systems.
class FileCopy {
  public:
    /// `info` is of `from`; `to` is empty. Holes stay holes.
    Status content(int from, int to, const struct stat& info);

  private:
    Status range(int from, int to, off_t begin, off_t end);

    // What the file systems refused once is not tried again.
    bool reflink_ = true;
    bool in_kernel_ = true;
};

/// Owner, mode, extended attributes and times; `path` is for messages.
Status copy_attributes(int from, int to, const struct stat& info, const std::string& path);

}  // namespace opensandbox::runtime::native
