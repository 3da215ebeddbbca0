#pragma once

#include "cli/failure.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace opensandbox::cli {

/// The options and positionals of one call, by their names in the table. Typed getters remember the
/// first value that is malformed: read all, then look at problem() once.
class Arguments {
  public:
    Arguments() = default;

    void add_option(std::string_view name, std::string value);
    void add_positional(std::string_view name, std::string value);

    [[nodiscard]] bool has(std::string_view option) const;
    /// The last value given.
    [[nodiscard]] std::optional<std::string> get(std::string_view option) const;
    [[nodiscard]] std::vector<std::string> all(std::string_view option) const;
    /// The values of a positional; empty when none was given.
    [[nodiscard]] std::vector<std::string> rest(std::string_view positional) const;
    /// The one value of a positional; the parser saw to it that it is there.
    [[nodiscard]] std::string one(std::string_view positional) const;

    /// Integers within [low, high].
    std::optional<std::int64_t> integer(std::string_view option, std::int64_t low,
                                        std::int64_t high);
    std::optional<std::chrono::milliseconds> duration(std::string_view option);
    /// A duration or the word "none"; outer empty: not given.
    std::optional<std::optional<std::chrono::milliseconds>> duration_or_none(
        std::string_view option);
    /// KEY=VALUE, any number; the key is not empty.
    std::vector<std::pair<std::string, std::string>> pairs(std::string_view option);
    /// "755", "0755": octal digits.
    std::optional<std::uint32_t> file_mode(std::string_view option);
    /// One of the words, in the given spelling, upper and lower case alike.
    std::optional<std::string> choice(std::string_view option, const std::string& value,
                                      const std::vector<std::string_view>& accepted);

    /// Remembers a problem with an option or positional: "--port: 'x' …".
    void refuse(std::string_view name, std::string_view value, std::string_view accepted);
    void refuse(std::string message);
    [[nodiscard]] const std::optional<Failure>& problem() const { return problem_; }

  private:
    std::vector<std::pair<std::string, std::string>> options_;
    std::vector<std::pair<std::string, std::string>> positionals_;
    std::optional<Failure> problem_;
};

}  // namespace opensandbox::cli
