#pragma once

#include "base/error.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::agent {

/// A file name pattern (execd contract 6.5): `*`, `?`, `[a-z]`, `[!x]`, `[^x]`, `{a,b}`, `\` takes
/// the next character literally, a leading `!` negates. `**` and a `/` matter only between
/// segments: what is matched is a base name, so a leading "**/" changes nothing and "src/*.py"
/// matches nothing. Time is bounded by pattern times name. Pure.
class Glob {
  public:
    /// `invalid_argument` for an unclosed `[` or `{`, a trailing `\`, a pattern longer than 4 KiB
    /// or one whose braces stand for more than 256 patterns. Empty means `**`.
    static Result<Glob> compile(std::string_view pattern);

    [[nodiscard]] bool matches(std::string_view name) const;

  private:
    struct Range {
        char32_t low = 0;
        char32_t high = 0;
    };
    enum class Kind : unsigned char { literal, any_one, any_many, set };
    struct Token {
        Kind kind = Kind::literal;
        char32_t literal = 0;
        bool negated = false;
        std::vector<Range> ranges;
    };
    using Sequence = std::vector<Token>;

    static Result<Sequence> compile_segment(std::string_view text);
    static Result<Token> compile_set(std::string_view text, std::size_t& at);
    static bool token_matches(const Token& token, char32_t c);
    static bool sequence_matches(const Sequence& sequence, const std::u32string& name);

    bool negated_ = false;
    bool matches_all_ = false;
    std::vector<Sequence> alternatives_;
};

}  // namespace opensandbox::agent
