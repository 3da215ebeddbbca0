#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"

#include <filesystem>
#include <string>

namespace opensandbox::image {

/// The lock of one store directory, between threads and processes. Held while alive.
class StoreLock {
  public:
    static Result<StoreLock> acquire(const std::filesystem::path& store);
    StoreLock(StoreLock&&) noexcept = default;
    StoreLock& operator=(StoreLock&&) = delete;
    ~StoreLock();

  private:
    explicit StoreLock(UniqueFd fd) : fd_(std::move(fd)) {}
    UniqueFd fd_;
};

/// A private directory below `<store>/staging`; removed with all that is still in it. Its own lock
/// tells other processes that it is in use.
class Staging {
  public:
    static Result<Staging> create(const std::filesystem::path& store);
    Staging(Staging&&) noexcept = default;
    Staging& operator=(Staging&&) = delete;
    ~Staging();

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

    /// Removes what processes that are gone left. The caller holds the store's lock.
    static Status remove_abandoned(const std::filesystem::path& store);

  private:
    Staging(std::filesystem::path path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
    std::filesystem::path path_;
    UniqueFd fd_;
};

/// Replaces a file in one step: a temporary file, fsync, rename, fsync of the directory.
Status write_file_atomically(const std::filesystem::path& file, std::string_view content);

/// All of a small file; `not_found` when there is none.
Result<std::string> read_file(const std::filesystem::path& file);

}  // namespace opensandbox::image
