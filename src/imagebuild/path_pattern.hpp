#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::imagebuild {

/// A pattern over whole relative paths: `*` and `?` stay within one part, `[a-z]`, `[^a-z]`, `\x`
/// and, where asked for, `**` for any number of parts.
class PathPattern {
  public:
    enum class Deep : std::uint8_t { no, yes };

    /// `invalid_argument` when a bracket is not closed or the pattern has more than 4096 bytes.
    static Result<PathPattern> parse(std::string_view text, Deep deep);

    [[nodiscard]] bool matches(std::string_view path) const;

  private:
    struct Token {
        enum class Kind : std::uint8_t {
            literal,
            any,          ///< one byte but '/'
            set,          ///< one byte of `ranges` but '/'
            star,         ///< bytes but '/'
            everything,   ///< bytes
            deep,         ///< may pass over the `directories` after it
            directories,  ///< bytes up to a '/'
        } kind = Kind::literal;
        char byte = 0;
        bool negated = false;
        std::vector<std::pair<unsigned char, unsigned char>> ranges;
    };
    static Result<Token> parse_set(std::string_view text, std::size_t& at);
    static bool accepts(const Token& token, char byte);

    std::vector<Token> tokens_;
};

/// Whether the text has one of `*?[`: else it names one path.
bool has_wildcard(std::string_view text);

/// Without "." and empty parts, with ".." resolved; a leading '/' is taken for the top. Empty is
/// the top itself. `invalid_argument` when it leads above the top.
Result<std::string> clean_path(std::string_view path);

/// The same from the root on, above which ".." stays at it.
std::string clean_absolute_path(std::string_view path);

}  // namespace opensandbox::imagebuild
