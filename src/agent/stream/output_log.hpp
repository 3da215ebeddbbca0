#pragma once

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/unique_fd.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace opensandbox::agent {

/// The last part of a process's output in a file that outlives the agent: a ring of fixed size,
/// each line with its time before it. Nothing is written before the first output.
class OutputLog {
  public:
    /// Bytes kept.
    static constexpr std::uint64_t kCapacity = 256 * 1024;

    OutputLog() = default;
    /// An empty file, open for writing; without one everything is dropped.
    explicit OutputLog(UniqueFd file) : file_(std::move(file)) {}

    /// Output that came at `at`, cut anywhere. A file that cannot be written costs the output only.
    void append(std::string_view bytes, Timestamp at);

    /// What a file holds, oldest first, from the beginning of a line on; also while it is written.
    /// Each line is "<RFC 3339> <text>\n"; the last may lack its end.
    static Result<std::string> read(int file);

  private:
    UniqueFd file_;
    std::uint64_t total_ = 0;
    bool line_begins_ = true;
};

}  // namespace opensandbox::agent
