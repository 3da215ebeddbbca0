#include "imagebuild/expansion.hpp"

#include <cctype>

namespace opensandbox::imagebuild {
namespace {

constexpr int kDeepest = 32;

bool is_name_start(char c) {
    return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}
bool is_name_part(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}
bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

Error refused(std::string message) {
    return {ErrorCode::invalid_argument, std::move(message)};
}

/// Reads one word from left to right.
class Expander {
  public:
    Expander(std::string_view text, const Variables& variables, char escape)
        : text_(text), variables_(variables), escape_(escape) {}

    /// Until `stop` (which is left unread) or the end.
    Result<std::string> read_until(char stop) {
        if (++depth_ > kDeepest) return refused("'${' stands in '${' too often");
        std::string out;
        while (at_ < text_.size() && (stop == 0 || text_[at_] != stop)) {
            auto piece = read_piece();
            if (!piece) return piece;
            out += *piece;
            if (out.size() > kLongestWord) return refused("a word becomes longer than 1 MiB");
        }
        --depth_;
        return out;
    }

  private:
    Result<std::string> read_piece() {
        const char c = text_[at_];
        if (c == '\'') return single_quoted();
        if (c == '"') return double_quoted();
        if (c == '$') return variable();
        ++at_;
        if (c != escape_) return std::string(1, c);
        // The last character of a word escapes nothing.
        return at_ < text_.size() ? std::string(1, text_[at_++]) : std::string();
    }

    Result<std::string> single_quoted() {
        const auto end = text_.find('\'', at_ + 1);
        if (end == std::string_view::npos) return refused("a ' is not closed");
        std::string inside(text_.substr(at_ + 1, end - at_ - 1));
        at_ = end + 1;
        return inside;
    }

    Result<std::string> double_quoted() {
        std::string out;
        for (++at_; at_ < text_.size();) {
            const char c = text_[at_];
            if (c == '"') {
                ++at_;
                return out;
            }
            if (c == '$') {
                auto value = variable();
                if (!value) return value;
                out += *value;
            } else if (c == escape_ && at_ + 1 < text_.size()) {
                const char next = text_[at_ + 1];
                if (next != '"' && next != '$' && next != escape_) out += c;
                out += next;
                at_ += 2;
            } else {
                out += c;
                ++at_;
            }
            if (out.size() > kLongestWord) return refused("a word becomes longer than 1 MiB");
        }
        return refused("a \" is not closed");
    }

    std::string take_name() {
        const std::size_t from = at_;
        if (at_ < text_.size() && is_name_start(text_[at_])) {
            while (at_ < text_.size() && is_name_part(text_[at_]))
                ++at_;
        } else {
            while (at_ < text_.size() && is_digit(text_[at_]))
                ++at_;
        }
        return std::string(text_.substr(from, at_ - from));
    }

    const std::string* find(const std::string& name) const {
        auto found = variables_.find(name);
        return found == variables_.end() ? nullptr : &found->second;
    }

    Result<std::string> variable() {
        ++at_;
        if (at_ < text_.size() && text_[at_] == '{') return braced();
        const std::string name = take_name();
        if (name.empty()) return std::string("$");
        const std::string* value = find(name);
        return value ? *value : std::string();
    }

    Result<std::string> braced() {
        ++at_;
        const std::string name = take_name();
        if (name.empty()) return refused("'${' must be followed by a name");
        if (at_ == text_.size()) return refused("'${" + name + "' is not closed");
        const std::string* value = find(name);
        if (text_[at_] == '}') {
            ++at_;
            return value ? *value : std::string();
        }
        bool empty_counts = true;
        if (text_[at_] == ':') {
            empty_counts = false;
            ++at_;
        }
        const char modifier = at_ < text_.size() ? text_[at_] : '\0';
        if (modifier != '-' && modifier != '+' && modifier != '?') {
            return refused("'${" + name + "': after the name only :- :+ :? - + ? and } are known");
        }
        ++at_;
        auto word = read_until('}');
        if (!word) return word;
        if (at_ == text_.size()) return refused("'${" + name + "' is not closed");
        ++at_;
        const bool set = value && (empty_counts || !value->empty());
        if (modifier == '+') return set ? *word : std::string();
        if (set) return *value;
        if (modifier == '?') {
            return refused(name + ": " + (word->empty() ? std::string("is not set") : *word));
        }
        return word;
    }

    std::string_view text_;
    const Variables& variables_;
    char escape_;
    std::size_t at_ = 0;
    int depth_ = 0;
};

}  // namespace

Result<std::string> expand(std::string_view word, const Variables& variables, char escape) {
    return Expander(word, variables, escape).read_until(0);
}

}  // namespace opensandbox::imagebuild
