#pragma once

#include <string>

/// Hellos made by hand, from the inside out.
namespace opensandbox::egress::test {

inline std::string counted(std::size_t width, const std::string& text) {
    std::string out;
    for (std::size_t i = width; i-- > 0;)
        out += static_cast<char>(text.size() >> (8 * i));
    return out + text;
}

inline std::string extension(unsigned type, const std::string& body) {
    return std::string{static_cast<char>(type >> 8), static_cast<char>(type)} + counted(2, body);
}

inline std::string server_name(const std::string& name) {
    return extension(0, counted(2, std::string(1, '\0') + counted(2, name)));
}

inline std::string record(const std::string& body) {
    return std::string("\x16\x03\x01", 3) + counted(2, body);
}

inline std::string hello_message(const std::string& extensions) {
    std::string body = "\x03\x03" + std::string(32, 'r') + counted(1, "") + counted(2, "\x13\x01") +
                       counted(1, std::string(1, '\0')) + counted(2, extensions);
    return "\x01" + counted(3, body);
}

}  // namespace opensandbox::egress::test
