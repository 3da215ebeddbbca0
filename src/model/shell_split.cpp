#include "model/create_request.hpp"

namespace opensandbox::model {
namespace {

/// What the reader of words is inside of.
enum class Quote : std::uint8_t { none, single, twofold };

bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

}  // namespace

std::optional<std::vector<std::string>> shell_split(std::string_view text) {
    std::vector<std::string> words;
    std::string word;
    bool open = false;  // a word has begun, perhaps still empty ("")
    Quote quote = Quote::none;
    for (std::size_t i = 0; i < text.size(); ++i) {
        char c = text[i];
        if (quote == Quote::single) {
            if (c == '\'')
                quote = Quote::none;
            else
                word += c;
        } else if (quote == Quote::twofold) {
            if (c == '"') {
                quote = Quote::none;
            } else if (c == '\\' && i + 1 < text.size() &&
                       (text[i + 1] == '"' || text[i + 1] == '\\')) {
                word += text[++i];
            } else {
                word += c;
            }
        } else if (is_blank(c)) {
            if (open) words.push_back(std::move(word));
            word.clear();
            open = false;
        } else {
            open = true;
            if (c == '\'')
                quote = Quote::single;
            else if (c == '"')
                quote = Quote::twofold;
            else if (c == '\\' && i + 1 < text.size())
                word += text[++i];
            else if (c == '\\')
                return std::nullopt;
            else
                word += c;
        }
    }
    if (quote != Quote::none) return std::nullopt;
    if (open) words.push_back(std::move(word));
    return words;
}

}  // namespace opensandbox::model
