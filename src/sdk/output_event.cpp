#include "sdk/wire.hpp"

namespace opensandbox::sdk::wire {

namespace {

constexpr std::size_t kMostDigits = 18;

/// A cursor over a frame. Every function returns false on what is not of the plain form.
class Scanner {
  public:
    explicit Scanner(std::string_view text) : text_(text) {}

    bool take(char wanted) {
        if (at_ == text_.size() || text_[at_] != wanted) return false;
        ++at_;
        return true;
    }
    [[nodiscard]] bool at_end() const { return at_ == text_.size(); }

    bool string(std::string& into) {
        if (!take('"')) return false;
        for (;;) {
            const std::size_t from = at_;
            while (at_ < text_.size() && is_plain(text_[at_]))
                ++at_;
            into.append(text_.substr(from, at_ - from));
            if (at_ == text_.size()) return false;
            const char c = text_[at_++];
            if (c == '"') return true;
            if (c != '\\' || !escape(into)) return false;
        }
    }

    bool integer(std::int64_t& into) {
        const std::size_t from = at_;
        while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
            into = into * 10 + (text_[at_++] - '0');
            if (at_ - from > kMostDigits) return false;
        }
        const std::size_t digits = at_ - from;
        return digits == 1 || (digits > 1 && text_[from] != '0');
    }

  private:
    static bool is_plain(char c) {
        const auto byte = static_cast<unsigned char>(c);
        return byte >= ' ' && byte < 0x80 && c != '"' && c != '\\';
    }

    bool escape(std::string& into) {
        if (at_ == text_.size()) return false;
        switch (text_[at_++]) {
            case 'n': into += '\n'; return true;
            case 'r': into += '\r'; return true;
            case 't': into += '\t'; return true;
            case 'b': into += '\b'; return true;
            case 'f': into += '\f'; return true;
            case '"': into += '"'; return true;
            case '\\': into += '\\'; return true;
            case '/': into += '/'; return true;
            case 'u': return code_unit(into);
            default: return false;
        }
    }

    /// \u00XX below 0x80 only: control characters and what HTML-safe encoders escape.
    bool code_unit(std::string& into) {
        unsigned value = 0;
        for (int i = 0; i < 4; ++i, ++at_) {
            if (at_ == text_.size()) return false;
            const char c = text_[at_];
            const unsigned digit = c >= '0' && c <= '9'   ? static_cast<unsigned>(c - '0')
                                   : c >= 'a' && c <= 'f' ? static_cast<unsigned>(c - 'a') + 10
                                   : c >= 'A' && c <= 'F' ? static_cast<unsigned>(c - 'A') + 10
                                                          : 16;
            if (digit == 16) return false;
            value = value * 16 + digit;
        }
        if (value >= 0x80) return false;
        into += static_cast<char>(value);
        return true;
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

}  // namespace

std::optional<Event> scan_output_event(std::string_view frame) {
    Scanner scanner(frame);
    Event event;
    bool has_type = false;
    bool has_text = false;
    bool has_time = false;
    if (!scanner.take('{')) return std::nullopt;
    std::string word;
    do {
        word.clear();
        if (!scanner.string(word) || !scanner.take(':')) return std::nullopt;
        if (word == "text" && !has_text) {
            has_text = true;
            if (!scanner.string(event.text)) return std::nullopt;
        } else if (word == "timestamp" && !has_time) {
            has_time = true;
            if (!scanner.integer(event.timestamp)) return std::nullopt;
        } else if (word == "type" && !has_type) {
            has_type = true;
            word.clear();
            if (!scanner.string(word)) return std::nullopt;
            if (word == "stdout")
                event.type = EventType::standard_output;
            else if (word == "stderr")
                event.type = EventType::standard_error;
            else
                return std::nullopt;
        } else {
            return std::nullopt;
        }
    } while (scanner.take(','));
    if (!scanner.take('}') || !scanner.at_end() || !has_type) return std::nullopt;
    return event;
}

}  // namespace opensandbox::sdk::wire
