#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::telemetry::testing {

/// The fields of one protobuf message, in order.
class ProtobufReader {
  public:
    struct Field {
        unsigned number = 0;
        std::uint64_t value = 0;  ///< of varints and fixed64
        std::string bytes;        ///< of length-delimited ones
    };

    explicit ProtobufReader(std::string_view message) {
        while (!message.empty()) {
            std::uint64_t tag = varint(message);
            Field field;
            field.number = static_cast<unsigned>(tag >> 3);
            switch (tag & 7) {
                case 0: field.value = varint(message); break;
                case 1: field.value = fixed64(cut(message, 8)); break;
                case 2: field.bytes = cut(message, varint(message)); break;
                default: throw std::runtime_error("wire type");
            }
            fields_.push_back(std::move(field));
        }
    }

    [[nodiscard]] std::vector<Field> all(unsigned number) const {
        std::vector<Field> found;
        for (const Field& field : fields_)
            if (field.number == number) found.push_back(field);
        return found;
    }
    /// The only field of that number.
    [[nodiscard]] Field one(unsigned number) const {
        auto found = all(number);
        if (found.size() != 1) throw std::runtime_error("field " + std::to_string(number));
        return found.front();
    }
    [[nodiscard]] std::string text(unsigned number) const { return one(number).bytes; }
    [[nodiscard]] std::uint64_t number(unsigned field) const { return one(field).value; }
    [[nodiscard]] double real(unsigned field) const {
        return std::bit_cast<double>(one(field).value);
    }
    [[nodiscard]] ProtobufReader message(unsigned number) const {
        return ProtobufReader(one(number).bytes);
    }
    [[nodiscard]] std::vector<std::uint64_t> packed(unsigned number) const {
        std::string bytes = one(number).bytes;
        std::string_view rest = bytes;
        std::vector<std::uint64_t> values;
        while (!rest.empty())
            values.push_back(fixed64(cut(rest, 8)));
        return values;
    }

  private:
    static std::string cut(std::string_view& from, std::uint64_t size) {
        if (size > from.size()) throw std::runtime_error("truncated");
        std::string piece(from.substr(0, size));
        from.remove_prefix(size);
        return piece;
    }
    static std::uint64_t fixed64(const std::string& bytes) {
        std::uint64_t value = 0;
        std::memcpy(&value, bytes.data(), sizeof value);
        return value;
    }
    static std::uint64_t varint(std::string_view& from) {
        std::uint64_t value = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            auto byte = static_cast<unsigned char>(cut(from, 1)[0]);
            value |= std::uint64_t{byte & 0x7fU} << shift;
            if (byte < 0x80) return value;
        }
        throw std::runtime_error("varint");
    }

    std::vector<Field> fields_;
};

}  // namespace opensandbox::telemetry::testing
