#include "agent/files/glob.hpp"

#include <algorithm>
#include <optional>

namespace opensandbox::agent {
namespace {

constexpr std::size_t kMaxPattern = 4096;
constexpr std::size_t kMaxAlternatives = 256;
constexpr char32_t kRawByte = 0x110000;  ///< bytes that are no UTF-8 stand above all characters

Error bad(std::string_view rule) {
    return {ErrorCode::invalid_argument, "pattern: " + std::string(rule)};
}

/// The character at `at`, which moves behind it; a byte that begins none stands for itself.
char32_t next_character(std::string_view text, std::size_t& at) {
    auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    unsigned char first = byte(at);
    std::size_t length = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first >= 0x80 && (first < 0xc2 || first > 0xf4 || at + length > text.size())) length = 0;
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(at + i) & 0xc0) != 0x80) length = 0;
    }
    if (length == 0) return kRawByte + byte(at++);
    static constexpr unsigned char kMasks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    char32_t value = first & kMasks[length];
    for (std::size_t i = 1; i < length; ++i)
        value = value << 6 | (byte(at + i) & 0x3fU);
    at += length;
    return value;
}

/// Behind the `]` of the set that begins at `at`; npos when there is none.
std::size_t skip_set(std::string_view text, std::size_t at) {
    std::size_t i = at + 1;
    if (i < text.size() && (text[i] == '!' || text[i] == '^')) ++i;
    bool first = true;
    for (; i < text.size(); ++i) {
        if (text[i] == '\\') {
            ++i;
        } else if (text[i] == ']' && !first) {
            return i + 1;
        }
        first = false;
    }
    return std::string_view::npos;
}

/// The parts between the braces that open at `at`, and where the text after them begins.
struct Braces {
    std::vector<std::string_view> parts;
    std::size_t end = 0;
};

std::optional<Braces> split_braces(std::string_view text, std::size_t at) {
    Braces braces;
    std::size_t depth = 0;
    std::size_t part = at + 1;
    for (std::size_t i = at; i < text.size(); ++i) {
        char c = text[i];
        if (c == '\\') {
            ++i;
        } else if (c == '[') {
            std::size_t end = skip_set(text, i);
            if (end != std::string_view::npos) i = end - 1;
        } else if (c == '{') {
            ++depth;
        } else if (c == ',' && depth == 1) {
            braces.parts.push_back(text.substr(part, i - part));
            part = i + 1;
        } else if (c == '}') {
            if (--depth > 0) continue;
            braces.parts.push_back(text.substr(part, i - part));
            braces.end = i + 1;
            return braces;
        }
    }
    return std::nullopt;
}

/// Position of the first `{` that is no literal; npos when there is none.
std::size_t find_brace(std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\\') {
            ++i;
        } else if (text[i] == '[') {
            std::size_t end = skip_set(text, i);
            if (end == std::string_view::npos) return end;
            i = end - 1;
        } else if (text[i] == '{') {
            return i;
        }
    }
    return std::string_view::npos;
}

/// All patterns without braces that the pattern stands for.
Result<std::vector<std::string>> expand_braces(std::string_view pattern) {
    std::vector<std::string> open{std::string(pattern)};
    std::vector<std::string> done;
    while (!open.empty()) {
        std::string text = std::move(open.back());
        open.pop_back();
        std::size_t brace = find_brace(text);
        if (brace == std::string::npos) {
            done.push_back(std::move(text));
            continue;
        }
        std::optional<Braces> braces = split_braces(text, brace);
        if (!braces) return bad("a { is not closed");
        if (open.size() + done.size() + braces->parts.size() > kMaxAlternatives) {
            return bad("braces stand for more than 256 patterns");
        }
        for (std::string_view part : braces->parts) {
            open.push_back(text.substr(0, brace) + std::string(part) + text.substr(braces->end));
        }
    }
    return done;
}

/// The segments between slashes.
std::vector<std::string_view> split_segments(std::string_view text) {
    std::vector<std::string_view> segments;
    std::size_t begin = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\\') {
            ++i;
        } else if (text[i] == '[') {
            std::size_t end = skip_set(text, i);
            if (end != std::string_view::npos) i = end - 1;
        } else if (text[i] == '/') {
            segments.push_back(text.substr(begin, i - begin));
            begin = i + 1;
        }
    }
    segments.push_back(text.substr(begin));
    return segments;
}

}  // namespace

Result<Glob> Glob::compile(std::string_view pattern) {
    if (pattern.size() > kMaxPattern) return bad("is longer than 4096 bytes");
    Glob glob;
    if (pattern.starts_with('!')) {
        glob.negated_ = true;
        pattern.remove_prefix(1);
    }
    if (pattern.empty()) pattern = "**";
    Result<std::vector<std::string>> expanded = expand_braces(pattern);
    if (!expanded) return expanded.error();
    for (const std::string& text : *expanded) {
        std::vector<std::string_view> own;
        bool any_depth = false;
        for (std::string_view segment : split_segments(text)) {
            if (segment == "**") {
                any_depth = true;
            } else {
                own.push_back(segment);
            }
        }
        if (own.empty() && any_depth) glob.matches_all_ = true;
        for (std::string_view segment : own) {
            Result<Sequence> sequence = compile_segment(segment);
            if (!sequence) return sequence.error();
            // A base name is one segment: a pattern of more matches nothing.
            if (own.size() == 1) glob.alternatives_.push_back(std::move(*sequence));
        }
    }
    return glob;
}

Result<Glob::Sequence> Glob::compile_segment(std::string_view text) {
    Sequence sequence;
    std::size_t at = 0;
    while (at < text.size()) {
        Token token;
        switch (text[at]) {
            case '*':
                while (at < text.size() && text[at] == '*')
                    ++at;
                token.kind = Kind::any_many;
                break;
            case '?':
                ++at;
                token.kind = Kind::any_one;
                break;
            case '[': {
                Result<Token> set = compile_set(text, at);
                if (!set) return set.error();
                token = std::move(*set);
                break;
            }
            case '\\':
                if (++at == text.size()) return bad("ends with a \\");
                [[fallthrough]];
            default: token.literal = next_character(text, at);
        }
        sequence.push_back(std::move(token));
    }
    return sequence;
}

Result<Glob::Token> Glob::compile_set(std::string_view text, std::size_t& at) {
    std::size_t end = skip_set(text, at);
    if (end == std::string_view::npos) return bad("a [ is not closed");
    Token token;
    token.kind = Kind::set;
    ++at;
    if (text[at] == '!' || text[at] == '^') {
        token.negated = true;
        ++at;
    }
    std::string_view inside = text.substr(0, end - 1);
    auto take = [&] {
        if (inside[at] == '\\' && at + 1 < inside.size()) ++at;
        return next_character(inside, at);
    };
    while (at < inside.size()) {
        Range range;
        range.low = take();
        range.high = range.low;
        if (at + 1 < inside.size() && inside[at] == '-') {
            ++at;
            range.high = take();
        }
        if (range.high < range.low) return bad("a range in [ ] runs backwards");
        token.ranges.push_back(range);
    }
    at = end;
    return token;
}

bool Glob::token_matches(const Token& token, char32_t c) {
    switch (token.kind) {
        case Kind::literal: return token.literal == c;
        case Kind::any_one: return true;
        case Kind::any_many: return false;
        case Kind::set: break;
    }
    bool inside = std::ranges::any_of(
        token.ranges, [c](const Range& range) { return range.low <= c && c <= range.high; });
    return inside != token.negated;
}

bool Glob::sequence_matches(const Sequence& sequence, const std::u32string& name) {
    std::size_t token = 0;
    std::size_t at = 0;
    std::size_t star = std::string::npos;  // the last `*`: the only place worth going back to
    std::size_t star_at = 0;
    while (at < name.size()) {
        if (token < sequence.size() && sequence[token].kind == Kind::any_many) {
            star = token++;
            star_at = at;
        } else if (token < sequence.size() && token_matches(sequence[token], name[at])) {
            ++token;
            ++at;
        } else if (star != std::string::npos) {
            token = star + 1;
            at = ++star_at;
        } else {
            return false;
        }
    }
    while (token < sequence.size() && sequence[token].kind == Kind::any_many)
        ++token;
    return token == sequence.size();
}

bool Glob::matches(std::string_view name) const {
    if (matches_all_) return !negated_;
    std::u32string characters;
    for (std::size_t at = 0; at < name.size();)
        characters += next_character(name, at);
    bool found = std::ranges::any_of(alternatives_, [&](const Sequence& sequence) {
        return sequence_matches(sequence, characters);
    });
    return found != negated_;
}

}  // namespace opensandbox::agent
