#include "net/address_block.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

namespace opensandbox::net {
namespace {

/// Clears the bits behind the prefix, or sets them.
void fill_behind(std::array<std::uint8_t, 16>& bytes, unsigned prefix, unsigned width, bool set) {
    for (unsigned i = prefix / 8; i < width / 8; ++i) {
        const unsigned kept = i * 8 < prefix ? prefix - i * 8 : 0;
        const auto tail = static_cast<std::uint8_t>(0xffU >> kept);
        bytes[i] = static_cast<std::uint8_t>(set ? bytes[i] | tail : bytes[i] & ~tail);
    }
}

/// Only the full forms; the library would take a scope, too.
std::optional<Address> parse_address(std::string_view text) {
    if (text.empty() || text.size() > 45 || text.find('%') != text.npos) return std::nullopt;
    boost::system::error_code ec;
    const Address address = boost::asio::ip::make_address(text, ec);
    if (ec) return std::nullopt;
    return address;
}

}  // namespace

AddressBlock::AddressBlock(const Address& address) : AddressBlock(address, 128) {}

AddressBlock::AddressBlock(const Address& address, unsigned prefix) : v6_(address.is_v6()) {
    if (v6_) {
        bytes_ = address.to_v6().to_bytes();
    } else {
        std::ranges::copy(address.to_v4().to_bytes(), bytes_.begin());
    }
    prefix_ = static_cast<std::uint8_t>(std::min(prefix, width()));
    fill_behind(bytes_, prefix_, width(), false);
}

Result<AddressBlock> AddressBlock::parse(std::string_view text) {
    const auto slash = text.find('/');
    const auto address = parse_address(text.substr(0, slash));
    if (!address) return invalid("must be an IPv4 or IPv6 address");
    if (slash == text.npos) return AddressBlock(*address);
    const std::string_view digits = text.substr(slash + 1);
    unsigned prefix = 0;
    const auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), prefix);
    const unsigned width = address->is_v6() ? 128 : 32;
    const bool zeros = digits.size() > 1 && digits.front() == '0';
    if (ec != std::errc() || end != digits.data() + digits.size() || zeros || prefix > width) {
        return invalid("the length of the prefix must be a number from 0 to " +
                       std::to_string(width));
    }
    return AddressBlock(*address, prefix);
}

Address AddressBlock::to_address(const Bytes& bytes) const {
    if (v6_) return boost::asio::ip::address_v6(bytes);
    return boost::asio::ip::address_v4({bytes[0], bytes[1], bytes[2], bytes[3]});
}

Address AddressBlock::last() const {
    Bytes bytes = bytes_;
    fill_behind(bytes, prefix_, width(), true);
    return to_address(bytes);
}

bool AddressBlock::contains(const Address& address) const {
    return contains(AddressBlock(address));
}

bool AddressBlock::contains(const AddressBlock& other) const {
    if (v6_ != other.v6_ || prefix_ > other.prefix_) return false;
    Bytes bytes = other.bytes_;
    fill_behind(bytes, prefix_, width(), false);
    return bytes == bytes_;
}

bool AddressBlock::overlaps(const AddressBlock& other) const {
    return contains(other) || other.contains(*this);
}

std::string AddressBlock::to_string() const {
    std::string text = network().to_string();
    if (!single()) text += "/" + std::to_string(prefix_);
    return text;
}

std::size_t AddressBlock::hash() const {
    std::uint64_t high = 0;
    std::uint64_t low = 0;
    std::memcpy(&high, bytes_.data(), 8);
    std::memcpy(&low, bytes_.data() + 8, 8);
    std::uint64_t mixed = (high ^ (prefix_ + (v6_ ? 256U : 0U))) * 0x9e3779b97f4a7c15U;
    mixed ^= mixed >> 32;
    mixed = (mixed ^ low) * 0xd6e8feb86659fd93U;
    return mixed ^ (mixed >> 32);
}

std::vector<AddressBlock> without_overlap(std::vector<AddressBlock> blocks) {
    std::ranges::sort(blocks);
    std::vector<AddressBlock> kept;
    for (const AddressBlock& block : blocks) {
        // In this order a block that holds others comes right before them.
        if (kept.empty() || !kept.back().contains(block)) kept.push_back(block);
    }
    return kept;
}

}  // namespace opensandbox::net
