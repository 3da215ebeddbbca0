#include "egress/dns/rebinding.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace opensandbox::egress::dns {

namespace {

struct Range4 {
    std::uint32_t network;
    unsigned bits;
};

constexpr std::array ranges4{
    Range4{0x00000000, 8},   // this network
    Range4{0x0a000000, 8},   // private
    Range4{0x64400000, 10},  // carriers' NAT
    Range4{0x7f000000, 8},   // loopback
    Range4{0xa9fe0000, 16},  // link-local, metadata services
    Range4{0xac100000, 12},  // private
    Range4{0xc0000000, 24},  // protocol assignments
    Range4{0xc0a80000, 16},  // private
    Range4{0xe0000000, 3},   // multicast, reserved, broadcast
};

struct Range6 {
    std::array<std::uint8_t, 12> start;
    unsigned bits;
};

constexpr std::array ranges6{
    Range6{{}, 96},                                          // ::, ::1, IPv4-compatible
    Range6{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96},  // IPv4-mapped
    Range6{{0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0}, 96},  // IPv4-translated
    Range6{{0x00, 0x64, 0xff, 0x9b}, 96},                    // NAT64
    Range6{{0x00, 0x64, 0xff, 0x9b, 0, 1}, 48},              // NAT64, local use
    Range6{{0x20, 0x01, 0, 0}, 32},                          // Teredo
    Range6{{0x20, 0x02}, 16},                                // 6to4
    Range6{{0xfc}, 7},                                       // unique local
    Range6{{0xfe, 0x80}, 10},                                // link-local
    Range6{{0xfe, 0xc0}, 10},                                // site-local
    Range6{{0xff}, 8},                                       // multicast
};

bool begins_with(const boost::asio::ip::address_v6::bytes_type& bytes, const Range6& range) {
    const std::size_t whole = range.bits / 8;
    if (!std::equal(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(whole),
                    range.start.begin())) {
        return false;
    }
    const unsigned rest = range.bits % 8;
    if (rest == 0) return true;
    const unsigned mask = 0xffU << (8 - rest) & 0xffU;
    return (bytes[whole] & mask) == (range.start[whole] & mask);
}

}  // namespace

bool is_inner(const boost::asio::ip::address& address) {
    if (address.is_v4()) {
        const std::uint32_t bits = address.to_v4().to_uint();
        return std::any_of(ranges4.begin(), ranges4.end(), [&](const Range4& range) {
            return bits >> (32 - range.bits) == range.network >> (32 - range.bits);
        });
    }
    const auto bytes = address.to_v6().to_bytes();
    return std::any_of(ranges6.begin(), ranges6.end(),
                       [&](const Range6& range) { return begins_with(bytes, range); });
}

}  // namespace opensandbox::egress::dns
