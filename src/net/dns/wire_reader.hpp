#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace opensandbox::net::dns {

inline constexpr std::size_t kHeaderSize = 12;
/// Bytes of a name in wire form with its last, empty label.
inline constexpr std::size_t kMaxName = 255;

/// Walks a message; once it runs past the end everything is zero and good() false. Pointers of
/// names only ever lead backwards, and not into the header, so that reading ends.
class WireReader {
  public:
    WireReader(std::string_view message, std::size_t at) : message_(message), at_(at) {}

    std::uint8_t byte() {
        if (at_ >= message_.size()) {
            good_ = false;
            return 0;
        }
        return static_cast<std::uint8_t>(message_[at_++]);
    }
    std::uint16_t word() {
        const auto high = static_cast<std::uint16_t>(byte() << 8);
        return static_cast<std::uint16_t>(high | byte());
    }
    std::uint32_t long_word() {
        const auto high = static_cast<std::uint32_t>(word()) << 16;
        return high | word();
    }
    std::string_view bytes(std::size_t count) {
        if (!good_ || count > message_.size() - at_) {
            good_ = false;
            return {};
        }
        const auto taken = message_.substr(at_, count);
        at_ += count;
        return taken;
    }
    /// As text: lower case, dots between labels, none at the end; see Question::name.
    std::string name();
    /// Uncompressed, in wire form with the empty label at its end, letters as they are; empty when
    /// unreadable.
    std::string wire_name();

    [[nodiscard]] bool good() const { return good_; }
    /// Whether a name had a pointer in it.
    [[nodiscard]] bool met_pointer() const { return met_pointer_; }
    [[nodiscard]] std::size_t at() const { return at_; }

  private:
    /// Hands each label on, without its length.
    template <class Take>
    void labels(Take take);

    std::string_view message_;
    std::size_t at_;
    bool good_ = true;
    bool met_pointer_ = false;
};

/// The text of a name that wire_name() gave.
std::string name_text(std::string_view wire_name);
/// Letters in lower case. Lengths of labels are below the letters, so that whole wire names may be
/// given.
std::string lower_case(std::string_view wire_name);
/// Whether two names in wire form are the same but for the case of letters.
bool same_name(std::string_view left, std::string_view right);

inline void put_word(std::string& out, std::uint32_t value) {
    out += static_cast<char>(value >> 8 & 0xff);
    out += static_cast<char>(value & 0xff);
}
inline void put_long_word(std::string& out, std::uint32_t value) {
    put_word(out, value >> 16);
    put_word(out, value & 0xffff);
}

}  // namespace opensandbox::net::dns
