#include "imagebuild/words.hpp"

#include "json/document.hpp"

#include <algorithm>

namespace opensandbox::imagebuild {
namespace {

constexpr std::string_view kBlanks = " \t";

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

std::string_view trim_left(std::string_view text) {
    const auto first = text.find_first_not_of(kBlanks);
    return first == std::string_view::npos ? std::string_view() : text.substr(first);
}

std::string_view trim(std::string_view text) {
    const auto last = text.find_last_not_of(kBlanks);
    return last == std::string_view::npos ? std::string_view()
                                          : trim_left(text.substr(0, last + 1));
}

std::string to_lower(std::string_view text) {
    std::string out(text);
    std::ranges::transform(out, out.begin(), lower);
    return out;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
    return std::ranges::equal(a, b, {}, lower, lower);
}

std::vector<std::string> split_words(std::string_view text, char escape) {
    std::vector<std::string> words;
    std::string word;
    bool inside = false;
    char quote = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (quote == 0 && kBlanks.find(c) != std::string_view::npos) {
            if (inside) words.push_back(std::move(word));
            word.clear();
            inside = false;
            continue;
        }
        inside = true;
        word += c;
        if (c == escape && quote != '\'' && i + 1 < text.size()) {
            word += text[++i];
        } else if (quote != 0) {
            if (c == quote) quote = 0;
        } else if (c == '\'' || c == '"') {
            quote = c;
        }
    }
    if (inside) words.push_back(std::move(word));
    return words;
}

Result<std::optional<std::vector<std::string>>> parse_exec_form(std::string_view text) {
    using Words = std::optional<std::vector<std::string>>;
    text = trim(text);
    if (!text.starts_with('[')) return Words();
    auto document = json::parse(text);
    // A shell command may begin with a bracket too: [ -f x ] && …
    if (!document || !document->is_array()) return Words();
    std::vector<std::string> words;
    for (const json::value& item : document->get_array()) {
        if (!item.is_string()) {
            return Error(ErrorCode::invalid_argument, "the JSON array must hold strings only");
        }
        words.emplace_back(item.get_string());
    }
    return Words(std::move(words));
}

}  // namespace opensandbox::imagebuild
