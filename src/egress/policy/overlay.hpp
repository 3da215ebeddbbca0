#pragma once

#include "egress/policy/policy.hpp"

#include <string>
#include <string_view>
#include <vector>

/// What an operator lays over every policy (network contract 1.2): files with one target a line,
/// `#` comment lines, blank lines. No part of it does I/O.
namespace opensandbox::egress {

inline constexpr std::string_view kDenyFile = "deny.always";
inline constexpr std::string_view kAllowFile = "allow.always";
inline constexpr std::string_view kLogSkipFile = "log_skip.always";

/// Rules that come before the user's, the denials first.
struct Overlay {
    std::vector<Rule> deny;
    std::vector<Rule> allow;
};

/// The targets of a file as rules of one action. A bad line is `invalid_argument`: `<file> line 3:
/// ...`.
Result<std::vector<Rule>> parse_overlay(std::string_view text, Action action,
                                        std::string_view file);

/// Names whose successful lookups are not logged.
class LogSkip {
  public:
    LogSkip() = default;
    /// Names and wildcards only, without ports; an address is an error.
    static Result<LogSkip> parse(std::string_view text, std::string_view file);

    [[nodiscard]] bool skips(std::string_view name) const;
    [[nodiscard]] std::size_t size() const { return exact_.size() + suffixes_.size(); }

  private:
    std::vector<std::string> exact_;     ///< sorted
    std::vector<std::string> suffixes_;  ///< sorted, without "*."
};

}  // namespace opensandbox::egress
