#include "net/nftables_set.hpp"

#include <algorithm>
#include <array>

namespace opensandbox::net::nft {

namespace {

constexpr std::size_t kInterfaceNameSize = 16;
constexpr std::size_t kWord = 4;

struct FieldShape {
    std::size_t size;
    std::uint32_t type;  ///< of nft's datatype.h
};

FieldShape shape_of(KeyField field) {
    switch (field) {
        case KeyField::mark: return {4, 19};
        case KeyField::link_name: return {kInterfaceNameSize, 41};
        case KeyField::ipv4: return {4, 7};
        case KeyField::ipv6: return {16, 8};
        case KeyField::protocol: return {1, 12};
        case KeyField::port: return {2, 13};
    }
    return {0, 0};
}

constexpr std::size_t padded(std::size_t size) {
    return (size + kWord - 1) / kWord * kWord;
}

}  // namespace

std::size_t SetLayout::key_size() const {
    if (key.size() == 1) return shape_of(key.front()).size;
    std::size_t size = 0;
    for (const auto field : key)
        size += padded(shape_of(field).size);
    return size;
}

std::uint32_t SetLayout::key_type() const {
    constexpr std::uint32_t kBitsOfAField = 6;
    std::uint32_t type = 0;
    for (const auto field : key)
        type = type << kBitsOfAField | shape_of(field).type;
    return type;
}

SetKey& SetKey::add(std::span<const std::uint8_t> field, std::size_t room) {
    bytes_.insert(bytes_.end(), field.begin(), field.end());
    bytes_.resize(bytes_.size() + room - field.size());
    return *this;
}

SetKey& SetKey::link(std::string_view name) {
    if (name.empty() || name.size() >= kInterfaceNameSize) {
        valid_ = false;
        return *this;
    }
    return add({reinterpret_cast<const std::uint8_t*>(name.data()), name.size()},
               kInterfaceNameSize);
}

SetKey& SetKey::ipv4(const Ipv4Address& address) {
    return add(address.to_bytes(), kWord);
}

SetKey& SetKey::ipv6(const Ipv6Address& address) {
    const auto bytes = address.to_bytes();
    return add(bytes, bytes.size());
}

SetKey& SetKey::address(const boost::asio::ip::address& address) {
    return address.is_v4() ? ipv4(address.to_v4()) : ipv6(address.to_v6());
}

SetKey& SetKey::protocol(std::uint8_t number) {
    return add({&number, 1}, kWord);
}

SetKey& SetKey::port(std::uint16_t number) {
    const std::array bytes{static_cast<std::uint8_t>(number >> 8),
                           static_cast<std::uint8_t>(number & 0xff)};
    return add(bytes, kWord);
}

std::optional<std::span<const std::uint8_t>> KeyReader::take(std::size_t size) {
    if (rest_.size() < size) return std::nullopt;
    const auto taken = rest_.first(size);
    rest_ = rest_.subspan(size);
    return taken;
}

std::optional<std::string> KeyReader::link() {
    const auto bytes = take(kInterfaceNameSize);
    if (!bytes) return std::nullopt;
    return std::string(bytes->begin(), std::ranges::find(*bytes, std::uint8_t{0}));
}

std::optional<Ipv4Address> KeyReader::ipv4() {
    const auto bytes = take(kWord);
    if (!bytes) return std::nullopt;
    Ipv4Address::bytes_type value{};
    std::ranges::copy(*bytes, value.begin());
    return Ipv4Address(value);
}

std::optional<Ipv6Address> KeyReader::ipv6() {
    Ipv6Address::bytes_type value{};
    const auto bytes = take(value.size());
    if (!bytes) return std::nullopt;
    std::ranges::copy(*bytes, value.begin());
    return Ipv6Address(value);
}

std::optional<std::uint8_t> KeyReader::protocol() {
    const auto bytes = take(kWord);
    if (!bytes) return std::nullopt;
    return bytes->front();
}

std::optional<std::uint16_t> KeyReader::port() {
    const auto bytes = take(kWord);
    if (!bytes) return std::nullopt;
    return static_cast<std::uint16_t>((*bytes)[0] << 8 | (*bytes)[1]);
}

}  // namespace opensandbox::net::nft
