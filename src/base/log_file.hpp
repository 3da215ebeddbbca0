#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string_view>

namespace opensandbox::log {

/// A file that lines are appended to. When it is full it becomes `<name>.1`, older ones count up,
/// and those past the number to keep go. Thread-safe; a failed write loses the line, never more.
class RotatingFile {
  public:
    /// Makes missing directories and opens the file (mode 0640). `max_bytes` 0: never full.
    static Result<std::unique_ptr<RotatingFile>> open(std::filesystem::path path,
                                                      std::int64_t max_bytes, std::int64_t keep);

    void append(std::string_view line);

  private:
    RotatingFile(std::filesystem::path path, std::int64_t max_bytes, std::int64_t keep)
        : path_(std::move(path)), max_bytes_(max_bytes), keep_(keep) {}
    Status reopen();
    void turn_over();
    [[nodiscard]] std::filesystem::path numbered(std::int64_t number) const;

    std::filesystem::path path_;
    std::int64_t max_bytes_;
    std::int64_t keep_;
    std::mutex mutex_;
    UniqueFd file_;
    std::int64_t size_ = 0;
};

}  // namespace opensandbox::log
