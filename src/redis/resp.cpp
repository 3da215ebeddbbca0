#include "redis/resp.hpp"

#include <charconv>

namespace opensandbox::redis::resp {
namespace {

Error broken(std::string_view why) {
    return {ErrorCode::protocol, "Redis: " + std::string(why)};
}

using Progress = Result<bool>;  ///< false: bytes are missing

/// Reads values off the front of a text.
class Reader {
  public:
    explicit Reader(std::string_view text) : text_(text) {}

    Progress read(Value& into, int depth) {
        std::string_view line;
        auto complete = read_line(line);
        if (!complete || !*complete) return complete;
        if (line.empty()) return broken("an empty line");
        std::string_view rest = line.substr(1);
        switch (line.front()) {
            case '+': into = Value(Kind::simple, std::string(rest)); return true;
            case '-': into = Value(Kind::error, std::string(rest)); return true;
            case ':': {
                into = Value(Kind::integer);
                if (!number(rest, into.number)) return broken("no number");
                return true;
            }
            case '$': return read_bulk(rest, into);
            case '*': return read_array(rest, into, depth);
            default: return broken("an unknown kind of reply");
        }
    }

    [[nodiscard]] std::size_t used() const { return at_; }

  private:
    static bool number(std::string_view text, std::int64_t& into) {
        auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), into);
        return failure == std::errc() && end == text.data() + text.size() && !text.empty();
    }

    Progress read_line(std::string_view& line) {
        std::size_t end = text_.find("\r\n", at_);
        std::size_t length = (end == std::string_view::npos ? text_.size() : end) - at_;
        if (length > kMaxLine) return broken("a line is too long");
        if (end == std::string_view::npos) return false;
        line = text_.substr(at_, length);
        at_ = end + 2;
        return true;
    }

    Progress read_bulk(std::string_view digits, Value& into) {
        std::int64_t size = 0;
        if (!number(digits, size) || size < -1) return broken("no length");
        if (size == -1) {
            into = Value(Kind::null);
            return true;
        }
        if (static_cast<std::uint64_t>(size) > kMaxBulk) return broken("a text is too long");
        auto length = static_cast<std::size_t>(size);
        if (text_.size() - at_ < length + 2) return false;
        if (text_.substr(at_ + length, 2) != "\r\n") return broken("a text does not end");
        into = Value(Kind::bulk, std::string(text_.substr(at_, length)));
        at_ += length + 2;
        return true;
    }

    Progress read_array(std::string_view digits, Value& into, int depth) {
        std::int64_t count = 0;
        if (!number(digits, count) || count < -1) return broken("no count");
        if (count == -1) {
            into = Value(Kind::null);
            return true;
        }
        if (static_cast<std::uint64_t>(count) > kMaxItems) return broken("a list is too long");
        if (depth >= kMaxDepth) return broken("lists are too deep");
        into = Value(Kind::array);
        for (std::int64_t i = 0; i < count; ++i) {
            auto complete = read(into.items.emplace_back(), depth + 1);
            if (!complete || !*complete) return complete;
        }
        return true;
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

}  // namespace

std::string command(const std::vector<std::string_view>& words) {
    std::string out = "*" + std::to_string(words.size()) + "\r\n";
    for (std::string_view word : words) {
        out += "$" + std::to_string(word.size()) + "\r\n";
        out += word;
        out += "\r\n";
    }
    return out;
}

Result<std::optional<Parsed>> parse(std::string_view received) {
    Reader reader(received);
    Parsed parsed;
    auto complete = reader.read(parsed.value, 0);
    if (!complete) return complete.error();
    if (!*complete) return std::optional<Parsed>();
    parsed.used = reader.used();
    return std::optional<Parsed>(std::move(parsed));
}

}  // namespace opensandbox::redis::resp
