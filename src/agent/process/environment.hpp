#pragma once

#include "base/error.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace opensandbox::agent {

/// Names and values of a process to be. Pure.
class Environment {
  public:
    using Pairs = std::vector<std::pair<std::string, std::string>>;

    Environment() = default;
    /// Later pairs win.
    explicit Environment(const Pairs& pairs) { merge(pairs); }

    void merge(const Pairs& pairs);
    void set(std::string name, std::string value);
    void erase(std::string_view name);
    [[nodiscard]] std::optional<std::string_view> get(std::string_view name) const;
    [[nodiscard]] Pairs pairs() const { return {values_.begin(), values_.end()}; }
    /// "NAME=value" for execve.
    [[nodiscard]] std::vector<std::string> entries() const;

  private:
    std::map<std::string, std::string, std::less<>> values_;
};

/// Finds the value of a variable; empty when it is not set.
using VariableLookup = std::function<std::optional<std::string>(std::string_view name)>;

/// Replaces $NAME and ${NAME}; any other `$` stays. Unset names become nothing.
std::string expand_variables(std::string_view text, const VariableLookup& lookup);

/// Replaces $NAME and ${NAME} of variables that are set; any other `$` stays. For paths of files
/// (execd contract 1.3 and 13.16).
std::string expand_defined(std::string_view text, const Environment& environment);

/// As expand_variables, but an unset name is `invalid_argument`; a leading `~` or `~/` becomes
/// `home`. For working directories (execd contract 3.1).
Result<std::string> expand_directory(std::string_view text, const Environment& environment);

/// Refuses names that are empty or hold `=`, and NUL anywhere.
Status check_environment(const Environment::Pairs& pairs);

}  // namespace opensandbox::agent
