#include "imagebuild/path_pattern.hpp"

#include <algorithm>

namespace opensandbox::imagebuild {
namespace {

constexpr std::size_t kLongest = 4096;

Error refused(std::string_view text, std::string_view rule) {
    return {ErrorCode::invalid_argument,
            "pattern '" + std::string(text) + "': " + std::string(rule)};
}

}  // namespace

Result<PathPattern::Token> PathPattern::parse_set(std::string_view text, std::size_t& at) {
    Token token;
    token.kind = Token::Kind::set;
    ++at;
    if (at < text.size() && (text[at] == '^' || text[at] == '!')) {
        token.negated = true;
        ++at;
    }
    auto take = [&]() -> Result<unsigned char> {
        if (at < text.size() && text[at] == '\\') ++at;
        if (at >= text.size()) return refused(text, "a [ is not closed");
        return static_cast<unsigned char>(text[at++]);
    };
    while (at < text.size() && (text[at] != ']' || token.ranges.empty())) {
        auto low = take();
        if (!low) return low.error();
        auto high = low;
        if (at + 1 < text.size() && text[at] == '-' && text[at + 1] != ']') {
            ++at;
            high = take();
            if (!high) return high.error();
        }
        token.ranges.emplace_back(*low, *high);
    }
    if (at >= text.size()) return refused(text, "a [ is not closed");
    ++at;
    return token;
}

Result<PathPattern> PathPattern::parse(std::string_view text, Deep deep) {
    if (text.size() > kLongest) return refused(text.substr(0, 64), "has more than 4096 bytes");
    PathPattern out;
    for (std::size_t at = 0; at < text.size();) {
        Token token;
        if (text[at] == '*') {
            const std::size_t from = at;
            while (at < text.size() && text[at] == '*')
                ++at;
            token.kind = Token::Kind::star;
            if (deep == Deep::yes && at - from > 1) {
                const bool part = at < text.size() && text[at] == '/';
                token.kind = part ? Token::Kind::deep : Token::Kind::everything;
                if (part) {
                    out.tokens_.push_back(std::move(token));
                    token = Token();
                    token.kind = Token::Kind::directories;
                    ++at;
                }
            }
        } else if (text[at] == '?') {
            token.kind = Token::Kind::any;
            ++at;
        } else if (text[at] == '[') {
            auto set = parse_set(text, at);
            if (!set) return set.error();
            token = std::move(*set);
        } else {
            if (text[at] == '\\' && at + 1 < text.size()) ++at;
            token.byte = text[at++];
        }
        out.tokens_.push_back(std::move(token));
    }
    return out;
}

bool PathPattern::accepts(const Token& token, char byte) {
    if (token.kind == Token::Kind::literal) return byte == token.byte;
    if (byte == '/') return false;
    if (token.kind == Token::Kind::any) return true;
    const auto value = static_cast<unsigned char>(byte);
    const bool inside = std::ranges::any_of(token.ranges, [&](const auto& range) {
        return range.first <= value && value <= range.second;
    });
    return inside != token.negated;
}

/// All positions of the pattern that the path read so far can stand at, kept as a set: the time is
/// the product of both lengths, whatever the pattern.
bool PathPattern::matches(std::string_view path) const {
    using Kind = Token::Kind;
    const std::size_t end = tokens_.size();
    std::vector<char> at(end + 1), next(end + 1);
    auto pass_over = [&](std::vector<char>& set) {
        for (std::size_t i = 0; i < end; ++i) {
            if (set[i] == 0) continue;
            const Kind kind = tokens_[i].kind;
            if (kind == Kind::star || kind == Kind::everything || kind == Kind::deep)
                set[i + 1] = 1;
            if (kind == Kind::deep) set[i + 2] = 1;  // no directory at all
        }
    };
    at[0] = 1;
    pass_over(at);
    for (const char byte : path) {
        std::ranges::fill(next, 0);
        for (std::size_t i = 0; i < end; ++i) {
            if (at[i] == 0) continue;
            switch (tokens_[i].kind) {
                case Kind::star:
                    if (byte != '/') next[i] = 1;
                    break;
                case Kind::everything: next[i] = 1; break;
                case Kind::deep: break;
                case Kind::directories:
                    next[i] = 1;
                    if (byte == '/') next[i + 1] = 1;
                    break;
                default:
                    if (accepts(tokens_[i], byte)) next[i + 1] = 1;
            }
        }
        at.swap(next);
        pass_over(at);
        if (std::ranges::none_of(at, [](char set) { return set != 0; })) return false;
    }
    return at[end] != 0;
}

bool has_wildcard(std::string_view text) {
    return text.find_first_of("*?[") != std::string_view::npos;
}

namespace {

/// False when the path leads above the top, where it then stays.
bool clean(std::string_view path, std::string& out) {
    std::vector<std::string_view> parts;
    bool inside = true;
    while (!path.empty()) {
        const auto slash = path.find('/');
        const std::string_view part = path.substr(0, slash);
        path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
        if (part.empty() || part == ".") continue;
        if (part != "..") {
            parts.push_back(part);
        } else if (parts.empty()) {
            inside = false;
        } else {
            parts.pop_back();
        }
    }
    for (std::string_view part : parts) {
        if (!out.empty()) out += '/';
        out += part;
    }
    return inside;
}

}  // namespace

Result<std::string> clean_path(std::string_view path) {
    std::string out;
    if (clean(path, out)) return out;
    return Error(ErrorCode::invalid_argument, "leads out of the directory");
}

std::string clean_absolute_path(std::string_view path) {
    std::string out;
    static_cast<void>(clean(path, out));
    return "/" + out;
}

}  // namespace opensandbox::imagebuild
