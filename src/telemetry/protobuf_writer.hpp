#pragma once

#include <cstdint>
#include <string>
#include <string_view>

/// Fields of a protobuf message, appended to it (Protocol Buffers encoding).
namespace opensandbox::telemetry::protobuf {

void append_varint(std::string& out, unsigned field, std::uint64_t value);
/// Eight bytes, little-endian: fixed64 and sfixed64.
void append_fixed64(std::string& out, unsigned field, std::uint64_t value);
void append_double(std::string& out, unsigned field, double value);
/// Strings, bytes, messages and packed lists.
void append_bytes(std::string& out, unsigned field, std::string_view bytes);

/// One element of a packed list of fixed64 or double.
void append_element(std::string& out, std::uint64_t value);
void append_element(std::string& out, double value);

}  // namespace opensandbox::telemetry::protobuf
