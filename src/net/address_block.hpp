#pragma once

#include "base/error.hpp"

#include <boost/asio/ip/address.hpp>

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::net {

using Address = boost::asio::ip::address;

/// An address, or a network in CIDR form whose host bits are zero. An IPv4 address mapped into IPv6
/// is an IPv6 one (network contract 1.2).
class AddressBlock {
  public:
    /// One address; a scope ("%eth0") is dropped.
    explicit AddressBlock(const Address& address);
    /// The network of that length around an address: bits beyond are cleared. `prefix` is at most
    /// 32 or 128; a longer one counts as that.
    AddressBlock(const Address& address, unsigned prefix);

    /// Reads "10.1.2.3", "10.0.0.0/8", "fd00::1" or "fd00::/8"; set host bits are cleared.
    /// invalid_argument for all else: scopes, brackets, ports, octal and short forms too.
    static Result<AddressBlock> parse(std::string_view text);

    [[nodiscard]] bool is_v6() const { return v6_; }
    [[nodiscard]] Address network() const { return to_address(bytes_); }
    /// The last address that it holds.
    [[nodiscard]] Address last() const;
    [[nodiscard]] unsigned prefix() const { return prefix_; }
    /// Whether it is one address.
    [[nodiscard]] bool single() const { return prefix_ == width(); }
    [[nodiscard]] bool contains(const Address& address) const;
    [[nodiscard]] bool contains(const AddressBlock& other) const;
    [[nodiscard]] bool overlaps(const AddressBlock& other) const;
    /// "10.0.0.0/8"; a single address without its length.
    [[nodiscard]] std::string to_string() const;
    [[nodiscard]] std::size_t hash() const;

    /// IPv4 first, then by network, wider before narrower.
    friend std::strong_ordering operator<=>(const AddressBlock&, const AddressBlock&) = default;

  private:
    using Bytes = std::array<std::uint8_t, 16>;

    [[nodiscard]] unsigned width() const { return v6_ ? 128 : 32; }
    [[nodiscard]] Address to_address(const Bytes& bytes) const;

    bool v6_ = false;
    Bytes bytes_{};  ///< in network order, from the front
    std::uint8_t prefix_ = 0;
};

struct AddressBlockHash {
    std::size_t operator()(const AddressBlock& block) const { return block.hash(); }
};

/// The same addresses without overlap, in order: blocks that another one holds are left out. The
/// kernel's interval sets refuse overlap.
std::vector<AddressBlock> without_overlap(std::vector<AddressBlock> blocks);

}  // namespace opensandbox::net
