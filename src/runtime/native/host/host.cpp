#include "runtime/native/host/host.hpp"

#include "runtime/native/ground/listening_socket.hpp"

#include <algorithm>
#include <charconv>

namespace opensandbox::runtime::native {

namespace {

constexpr std::uint32_t kIdsPerSlot = 65'536;
constexpr std::uint32_t kFirstId = 0x1000'0000;
constexpr std::uint32_t kIdRanges = 60'000;  // kFirstId + kIdRanges * kIdsPerSlot < 2^32

}  // namespace

std::string Host::link_name(SlotId slot) const {
    return link_prefix() + slot_name(slot).substr(1);
}

std::filesystem::path Host::slot_directory(SlotId slot) const {
    return options.sandboxes_directory() / slot_name(slot);
}

Result<UniqueFd> Host::listen(const std::string& host, std::uint16_t& port) const {
    return uplink ? uplink.listen(host, port) : listen_on(host, port);
}

Gateways Host::gateways() const {
    Gateways out;
    out.record = options.own_directory() / "gateways";
    out.label = "lo:" + link_prefix();
    out.addresses.emplace_back(gateway());
    if (range6) out.addresses.emplace_back(gateway6());
    return out;
}

std::uint32_t Host::capacity() const {
    // Not the network's own address, the gateway's and the broadcast address.
    return std::min(range.size() - 3, kIdRanges);
}

namespace {

std::uint32_t own_range(const std::string& tag, SlotId slot) {
    // Servers with different state directories start at different ranges.
    std::uint32_t seed = 0;
    std::from_chars(tag.data(), tag.data() + tag.size(), seed, 16);
    return kFirstId + (seed + slot.index) % kIdRanges * kIdsPerSlot;
}

}  // namespace

std::uint32_t Host::id_base(SlotId slot) const {
    return shift_ids ? own_range(tag, slot) : 0;
}

std::array<std::uint32_t, 2> Host::makers(SlotId slot) const {
    const std::uint32_t others = std::max(ids, 2U) - 1;
    return {own_range(tag, slot), 1 + slot.index % others};
}

net::Ipv6Range own_range6(const std::string& tag) {
    // fd, "osb" and the tag.
    const std::string text = "fd6f:7362:" + tag.substr(0, 4) + ":" + tag.substr(4) + "00::/64";
    return net::Ipv6Range::parse(text).value();
}

}  // namespace opensandbox::runtime::native
