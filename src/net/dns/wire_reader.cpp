#include "net/dns/wire_reader.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>

namespace opensandbox::net::dns {

namespace {

constexpr std::size_t kMaxPointers = 64;

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

void append_label(std::string& name, std::string_view label) {
    if (!name.empty()) name += '.';
    for (const char c : label) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '.' || c == '\\') {
            name += '\\';
            name += c;
        } else if (byte > ' ' && byte < 0x7f) {
            name += lower(c);
        } else {
            std::array<char, 5> text{};
            std::snprintf(text.data(), text.size(), "\\%03u", byte);
            name += text.data();
        }
    }
}

}  // namespace

template <class Take>
void WireReader::labels(Take take) {
    std::size_t length = 0;
    std::size_t pointers = 0;
    std::optional<std::size_t> resume;
    while (good_) {
        const std::size_t here = at_;
        const std::uint8_t size = byte();
        if (size == 0) break;
        if ((size & 0xc0) == 0xc0) {
            const std::size_t target = static_cast<std::size_t>(size & 0x3f) << 8 | byte();
            met_pointer_ = true;
            if (!resume) resume = at_;
            if (!good_ || target < kHeaderSize || target >= here || ++pointers > kMaxPointers) {
                good_ = false;
            }
            at_ = target;
            continue;
        }
        if ((size & 0xc0) != 0) good_ = false;
        length += size + 1U;
        if (length >= kMaxName) good_ = false;
        take(bytes(size));
    }
    if (resume) at_ = *resume;
}

std::string WireReader::name() {
    std::string name;
    labels([&](std::string_view label) { append_label(name, label); });
    return good_ ? name : std::string();
}

std::string WireReader::wire_name() {
    std::string name;
    labels([&](std::string_view label) {
        name += static_cast<char>(label.size());
        name += label;
    });
    name += '\0';
    return good_ ? name : std::string();
}

std::string name_text(std::string_view wire_name) {
    return WireReader(wire_name, 0).name();
}

std::string lower_case(std::string_view wire_name) {
    std::string out(wire_name);
    std::transform(out.begin(), out.end(), out.begin(), lower);
    return out;
}

bool same_name(std::string_view left, std::string_view right) {
    return left.size() == right.size() &&
           std::equal(left.begin(), left.end(), right.begin(),
                      [](char a, char b) { return lower(a) == lower(b); });
}

}  // namespace opensandbox::net::dns
