#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::cli {

/// A log line without the time that it begins with ("2026-01-02T03:04:05.678Z text").
std::string_view without_time(std::string_view line);

/// Takes answers to the same question, asked again and again, and finds the lines that were not in
/// earlier ones. Lines begin with their time and come in its order. Pure.
class LogFollower {
  public:
    /// The new lines of `text`, which they point into.
    std::vector<std::string_view> fresh(std::string_view text);
    [[nodiscard]] bool started() const { return started_; }

  private:
    std::string last_time_;
    std::vector<std::string> at_last_time_;  ///< lines that bear it
    bool started_ = false;
};

}  // namespace opensandbox::cli
