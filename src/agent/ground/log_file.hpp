#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace opensandbox::agent {

/// The file of EXECD_LOG_FILE (execd contract 1.1). When it has grown large it becomes `<path>.1`,
/// the former one `<path>.2` and so on, and a new one takes its place under the same descriptor.
class LogFile {
  public:
    static constexpr std::uint64_t kMaxSize = std::uint64_t{64} << 20;
    static constexpr int kKept = 3;  ///< former files

    /// Opens or makes it, mode 0600.
    static Result<std::shared_ptr<LogFile>> open(std::string path);

    [[nodiscard]] int descriptor() const { return fd_.get(); }
    /// Starts a new file when this one has more than `limit` bytes. On failure the old one stays.
    Status rotate(std::uint64_t limit = kMaxSize);

  private:
    LogFile(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
    std::string path_;
    UniqueFd fd_;
};

}  // namespace opensandbox::agent
