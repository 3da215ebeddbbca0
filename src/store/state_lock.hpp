#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"

#include <filesystem>

namespace opensandbox::store {

/// Holds a state directory or a database for one server; let go when destroyed or when the process
/// ends in any way.
class StateLock {
  public:
    /// Makes the directory (mode 0700) when it is missing. `conflict` when another server holds it.
    static Result<StateLock> acquire(const std::filesystem::path& directory);
    /// The same for a database file, wherever it is: servers with state directories of their own
    /// may name the same one. Links to it are followed.
    static Result<StateLock> acquire_store(const std::filesystem::path& file);

  private:
    explicit StateLock(UniqueFd file) : file_(std::move(file)) {}
    UniqueFd file_;
};

}  // namespace opensandbox::store
