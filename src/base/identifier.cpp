#include "base/identifier.hpp"

#include "base/base64.hpp"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstdlib>

namespace opensandbox {
namespace {

std::string to_hex(const unsigned char* bytes, std::size_t size) {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string text;
    text.reserve(size * 2);
    for (std::size_t i = 0; i < size; ++i) {
        text += kDigits[bytes[i] >> 4];
        text += kDigits[bytes[i] & 15];
    }
    return text;
}

}  // namespace

void random_bytes(void* out, std::size_t size) {
    auto* at = static_cast<unsigned char*>(out);
    while (size > 0) {
        ssize_t got = ::getrandom(at, size, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) std::abort();
        at += got;
        size -= static_cast<std::size_t>(got);
    }
}

std::string new_uuid() {
    std::array<unsigned char, 16> raw{};
    random_bytes(raw.data(), raw.size());
    raw[6] = static_cast<unsigned char>((raw[6] & 0x0f) | 0x40);
    raw[8] = static_cast<unsigned char>((raw[8] & 0x3f) | 0x80);
    std::string hex = to_hex(raw.data(), raw.size());
    return hex.substr(0, 8) + "-" + hex.substr(8, 4) + "-" + hex.substr(12, 4) + "-" +
           hex.substr(16, 4) + "-" + hex.substr(20);
}

std::string new_hex_id() {
    std::array<unsigned char, 16> raw{};
    random_bytes(raw.data(), raw.size());
    return to_hex(raw.data(), raw.size());
}

std::string HexIds::next() {
    if (used_ == sizeof drawn_) {
        random_bytes(drawn_, sizeof drawn_);
        used_ = 0;
    }
    std::string id = to_hex(drawn_ + used_, kBytes);
    used_ += kBytes;
    return id;
}

std::string new_token() {
    std::string raw(24, '\0');
    random_bytes(raw.data(), raw.size());
    return to_base64url(raw);
}

bool is_uuid(std::string_view text) {
    if (text.size() != 36) return false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        bool hyphen = i == 8 || i == 13 || i == 18 || i == 23;
        char c = text[i];
        bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
        if (hyphen ? c != '-' : !hex) return false;
    }
    return true;
}

bool equal_constant_time(std::string_view a, std::string_view b) {
    unsigned difference = a.size() == b.size() ? 0 : 1;
    for (std::size_t i = 0; i < a.size(); ++i) {
        unsigned char other = i < b.size() ? static_cast<unsigned char>(b[i]) : 0;
        difference |= static_cast<unsigned char>(a[i]) ^ other;
    }
    return difference == 0;
}

}  // namespace opensandbox
