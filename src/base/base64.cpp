#include "base/base64.hpp"

#include <openssl/evp.h>

#include <climits>

namespace opensandbox {

std::string to_base64(std::string_view bytes) {
    std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');
    int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                 reinterpret_cast<const unsigned char*>(bytes.data()),
                                 static_cast<int>(bytes.size()));
    text.resize(static_cast<std::size_t>(length));
    return text;
}

std::optional<std::string> from_base64(std::string_view text) {
    if (text.size() % 4 != 0 || text.size() > INT_MAX) return std::nullopt;
    if (text.empty()) return std::string();
    std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
    std::string bytes(text.size() / 4 * 3, '\0');
    int length = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                                 reinterpret_cast<const unsigned char*>(text.data()),
                                 static_cast<int>(text.size()));
    if (length < 0) return std::nullopt;
    bytes.resize(static_cast<std::size_t>(length) - padding);
    return bytes;
}

std::string to_base64url(std::string_view bytes) {
    constexpr std::string_view kDigits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    std::string text;
    text.reserve((bytes.size() * 4 + 2) / 3);
    unsigned bits = 0;
    unsigned held = 0;
    for (const char c : bytes) {
        bits = bits << 8U | static_cast<unsigned char>(c);
        for (held += 8; held >= 6; held -= 6)
            text += kDigits[bits >> (held - 6) & 63U];
    }
    if (held > 0) text += kDigits[bits << (6 - held) & 63U];
    return text;
}

}  // namespace opensandbox
