#pragma once

#include "imagebuild/path_pattern.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::imagebuild {

/// The rules of a .dockerignore: one pattern a line, `#` comments, `!` takes back; the last rule
/// that a path or a directory above it matches decides. Pure.
class IgnoreRules {
  public:
    IgnoreRules() = default;
    /// `invalid_argument` names file and line.
    static Result<IgnoreRules> parse(std::string_view text, std::string_view file);

    /// `path` is relative, without "." and "..".
    [[nodiscard]] bool ignores(std::string_view path) const;
    /// Whether something below an ignored directory may be taken back.
    [[nodiscard]] bool has_exceptions() const { return exceptions_; }

  private:
    struct Rule {
        PathPattern pattern;
        bool negated;
    };
    std::vector<Rule> rules_;
    bool exceptions_ = false;
};

}  // namespace opensandbox::imagebuild
