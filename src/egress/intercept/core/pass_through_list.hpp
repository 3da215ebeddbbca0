#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::egress {

/// The names that are not intercepted, as an administrator lists them (network 1.9, ignore_hosts).
class PassThroughList {
  public:
    PassThroughList() = default;
    /// `names` are host names or `*.name` (what is below it, not itself). `patterns` are regular
    /// expressions (ECMAScript), searched for anywhere in "name" or "name:port", case ignored.
    /// `invalid_argument` names the entry that is wrong.
    static Result<PassThroughList> make(const std::vector<std::string>& names,
                                        const std::vector<std::string>& patterns);

    /// `host` in normal form.
    [[nodiscard]] bool has(std::string_view host, std::uint16_t port) const;
    /// Whether it may have a host below `name` (`*.name`). Of patterns only what they say of
    /// "*.name" and of `name` itself is known.
    [[nodiscard]] bool has_below(std::string_view name, std::uint16_t port) const;
    /// Either, at one of these ports.
    [[nodiscard]] bool covers(std::string_view name, bool below,
                              const std::vector<std::uint16_t>& ports) const;
    /// Whether it has any: what they match cannot be compared with what a binding is for.
    [[nodiscard]] bool has_patterns() const { return !patterns_.empty(); }
    [[nodiscard]] bool empty() const { return names_.empty() && patterns_.empty(); }

  private:
    struct Name {
        std::string text;
        bool below = false;
    };
    std::vector<Name> names_;
    std::vector<std::regex> patterns_;
};

/// What interception mode credential-bound says to patterns.
inline constexpr const char* kPatternsMixed =
    "does not go with patterns in MITMPROXY_IGNORE_HOSTS: list names and *.names, or use "
    "MITMPROXY_PASSTHROUGH_HOSTS";

/// The list of entries in one: those that are host names or `*.name` are names, all others
/// patterns.
Result<PassThroughList> pass_through_list(const std::vector<std::string>& entries);

}  // namespace opensandbox::egress
