#include "registry/authentication.hpp"

#include <algorithm>

namespace opensandbox::registry {
namespace {

constexpr std::size_t kLongest = 8192;
constexpr std::size_t kMostChallenges = 16;
constexpr std::size_t kMostParameters = 32;

bool is_token_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return out;
}

Error broken(std::string_view what) {
    return {ErrorCode::protocol, "WWW-Authenticate: " + std::string(what)};
}

class Reader {
  public:
    explicit Reader(std::string_view text) : rest_(text) {}

    [[nodiscard]] bool ended() const { return rest_.empty(); }
    void skip(std::string_view characters) {
        rest_.remove_prefix(std::min(rest_.find_first_not_of(characters), rest_.size()));
    }
    bool take(char c) {
        if (rest_.empty() || rest_.front() != c) return false;
        rest_.remove_prefix(1);
        return true;
    }
    std::string_view token() {
        std::size_t length = 0;
        while (length < rest_.size() && is_token_character(rest_[length]))
            ++length;
        std::string_view token = rest_.substr(0, length);
        rest_.remove_prefix(length);
        return token;
    }
    /// Credentials in one word ("Negotiate abc=="), which nothing here understands.
    bool skip_word() {
        std::size_t end = rest_.find_first_of(", \t");
        std::string_view word = rest_.substr(0, end);
        std::size_t padding = word.find('=');
        bool single = padding == std::string_view::npos ||
                      word.find_first_not_of('=', padding) == std::string_view::npos;
        std::string_view behind = end == std::string_view::npos ? "" : rest_.substr(end);
        behind.remove_prefix(std::min(behind.find_first_not_of(" \t"), behind.size()));
        if (word.empty() || !single || (!behind.empty() && behind.front() != ',')) return false;
        rest_ = behind;
        return true;
    }
    /// A token or a quoted string.
    Result<std::string> value() {
        if (!take('"')) {
            std::string_view word = token();
            if (word.empty()) return broken("a parameter has no value");
            return std::string(word);
        }
        std::string text;
        while (!rest_.empty()) {
            char c = rest_.front();
            rest_.remove_prefix(1);
            if (c == '"') return text;
            if (c == '\\') {
                if (rest_.empty()) break;
                c = rest_.front();
                rest_.remove_prefix(1);
            }
            if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) {
                return broken("a value holds a control character");
            }
            text += c;
        }
        return broken("a quoted value does not end");
    }

  private:
    std::string_view rest_;
};

}  // namespace

std::string_view Challenge::parameter(std::string_view name) const {
    for (const auto& [key, value] : parameters) {
        if (key == name) return value;
    }
    return {};
}

Result<std::vector<Challenge>> parse_challenges(std::string_view field) {
    if (field.size() > kLongest) return broken("longer than 8 KiB");
    Reader reader(field);
    std::vector<Challenge> challenges;
    for (reader.skip(" \t,"); !reader.ended(); reader.skip(" \t,")) {
        std::string_view name = reader.token();
        if (name.empty()) return broken("no name where one is expected");
        reader.skip(" \t");
        if (!challenges.empty() && reader.take('=')) {
            reader.skip(" \t");
            auto value = reader.value();
            if (!value) return value.error();
            auto& parameters = challenges.back().parameters;
            if (parameters.size() == kMostParameters) return broken("too many parameters");
            parameters.emplace_back(lower(name), std::move(*value));
            reader.skip(" \t");
            continue;
        }
        if (challenges.size() == kMostChallenges) return broken("too many challenges");
        challenges.emplace_back();
        challenges.back().scheme = lower(name);
        reader.skip_word();
    }
    return challenges;
}

}  // namespace opensandbox::registry
