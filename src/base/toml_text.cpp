#include "base/toml_text.hpp"

#include <string>

namespace opensandbox {
namespace {

/// Follows a document just far enough to know what is quoted or commented.
class Scanner {
  public:
    explicit Scanner(std::string_view text) : text_(text) {}

    /// The line of the first forbidden character, 0 when there is none.
    std::size_t forbidden_line() {
        constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
        if (text_.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
        while (at_ < text_.size()) {
            char c = text_[at_];
            if (static_cast<unsigned char>(c) >= 0x80) return line_;
            if (c == '#') {
                skip_comment();
            } else if (c == '"' || c == '\'') {
                skip_quoted(c);
            } else {
                advance(1);
            }
        }
        return 0;
    }

  private:
    void advance(std::size_t count) {
        for (; count > 0 && at_ < text_.size(); --count) {
            if (text_[at_++] == '\n') ++line_;
        }
    }

    void skip_comment() {
        while (at_ < text_.size() && text_[at_] != '\n')
            ++at_;
    }

    /// Ends at the closing quotes; text in single quotes also at the end of its line, where it is
    /// an error that the parser reports.
    void skip_quoted(char quote) {
        const std::string triple(3, quote);
        bool multiline = text_.substr(at_).starts_with(triple);
        advance(multiline ? 3 : 1);
        while (at_ < text_.size()) {
            char c = text_[at_];
            if (c == '\\' && quote == '"') {
                advance(2);
            } else if (!multiline && (c == quote || c == '\n')) {
                return advance(1);
            } else if (multiline && text_.substr(at_).starts_with(triple)) {
                return advance(3);
            } else {
                advance(1);
            }
        }
    }

    std::string_view text_;
    std::size_t at_ = 0;
    std::size_t line_ = 1;
};

}  // namespace

Status check_toml_text(std::string_view text, std::string_view source) {
    std::size_t line = Scanner(text).forbidden_line();
    if (line == 0) return {};
    return Error(ErrorCode::invalid_argument,
                 std::string(source) + ":" + std::to_string(line) +
                     ": characters beyond ASCII must be in quotes or in a comment");
}

}  // namespace opensandbox
