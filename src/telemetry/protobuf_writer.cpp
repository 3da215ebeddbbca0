#include "telemetry/protobuf_writer.hpp"

#include <bit>

namespace opensandbox::telemetry::protobuf {
namespace {

enum class WireType : unsigned char { varint = 0, fixed64 = 1, length_delimited = 2 };

void append_raw(std::string& out, std::uint64_t value) {
    while (value >= 0x80) {
        out += static_cast<char>((value & 0x7f) | 0x80);
        value >>= 7;
    }
    out += static_cast<char>(value);
}

void append_tag(std::string& out, unsigned field, WireType type) {
    append_raw(out, std::uint64_t{field} << 3 | static_cast<unsigned>(type));
}

}  // namespace

void append_varint(std::string& out, unsigned field, std::uint64_t value) {
    append_tag(out, field, WireType::varint);
    append_raw(out, value);
}

void append_fixed64(std::string& out, unsigned field, std::uint64_t value) {
    append_tag(out, field, WireType::fixed64);
    append_element(out, value);
}

void append_double(std::string& out, unsigned field, double value) {
    append_fixed64(out, field, std::bit_cast<std::uint64_t>(value));
}

void append_bytes(std::string& out, unsigned field, std::string_view bytes) {
    append_tag(out, field, WireType::length_delimited);
    append_raw(out, bytes.size());
    out += bytes;
}

void append_element(std::string& out, std::uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8)
        out += static_cast<char>(value >> shift);
}

void append_element(std::string& out, double value) {
    append_element(out, std::bit_cast<std::uint64_t>(value));
}

}  // namespace opensandbox::telemetry::protobuf
