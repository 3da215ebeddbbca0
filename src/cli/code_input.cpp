#include "cli/code_input.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace opensandbox::cli {

namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kSuffixes{{
    {".py", "python"},
    {".js", "javascript"},
    {".mjs", "javascript"},
    {".ts", "typescript"},
    {".sh", "bash"},
    {".bash", "bash"},
    {".java", "java"},
    {".go", "go"},
}};

/// What is open at the end of a text.
struct Open {
    int brackets = 0;
    std::string quote;  ///< the mark that would close it
};

/// How long a text in these quotes may be: over lines, or to the end of its line.
bool spans_lines(std::string_view language, std::string_view quote) {
    return quote.size() == 3 || quote == "`" || language == "bash";
}

std::size_t quote_length(std::string_view language, std::string_view from) {
    const bool triple =
        language == "python" && (from.starts_with("\"\"\"") || from.starts_with("'''"));
    return triple ? 3 : 1;
}

/// Brackets count where they nest in every construct; those of bash's `case` do not.
bool counts_brackets(std::string_view language) {
    return language != "bash";
}

bool begins_comment(std::string_view language, std::string_view from) {
    if (language == "python" || language == "bash") return from.front() == '#';
    return from.starts_with("//");
}

Open scan(std::string_view language, std::string_view text) {
    Open open;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        const std::string_view from = text.substr(i);
        if (c == '\\' && !(language == "bash" && open.quote == "'")) {
            ++i;
        } else if (!open.quote.empty()) {
            const bool ends = from.starts_with(open.quote);
            if (ends) i += open.quote.size() - 1;
            if (ends || (c == '\n' && !spans_lines(language, open.quote))) open.quote.clear();
        } else if (c == '"' || c == '\'' || c == '`') {
            open.quote = from.substr(0, quote_length(language, from));
            i += open.quote.size() - 1;
        } else if (begins_comment(language, from)) {
            i = std::min(text.find('\n', i), text.size()) - 1;
        } else if (c == '(' || c == '[' || c == '{') {
            ++open.brackets;
        } else if (c == ')' || c == ']' || c == '}') {
            --open.brackets;
        }
    }
    return open;
}

std::string_view last_line(std::string_view text) {
    const auto end = text.find_last_of('\n');
    return end == std::string_view::npos ? text : text.substr(end + 1);
}

std::string_view trimmed(std::string_view text) {
    const auto from = text.find_first_not_of(" \t\r");
    if (from == std::string_view::npos) return {};
    return text.substr(from, text.find_last_not_of(" \t\r") - from + 1);
}

/// A line that ends with a colon, or a decorator, begins a block; it goes on until an empty line.
bool in_python_block(std::string_view text) {
    const std::string_view last = last_line(text);
    if (trimmed(last).empty()) return false;
    if (trimmed(last).ends_with(':') || trimmed(last).starts_with('@')) return true;
    return last.front() == ' ' || last.front() == '\t';
}

}  // namespace

std::string_view language_of(std::string_view file_name) {
    for (const auto& [suffix, language] : kSuffixes) {
        if (file_name.ends_with(suffix)) return language;
    }
    return {};
}

bool needs_more(std::string_view language, std::string_view typed) {
    if (typed.ends_with('\n')) typed.remove_suffix(1);
    const std::string_view last = trimmed(last_line(typed));
    if (last.ends_with('\\')) return true;
    const Open open = scan(language, typed);
    if (!open.quote.empty() && spans_lines(language, open.quote)) return true;
    if (counts_brackets(language) && open.brackets > 0) return true;
    return language == "python" && in_python_block(typed);
}

}  // namespace opensandbox::cli
