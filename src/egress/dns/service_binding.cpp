// Parameters of HTTPS and SVCB records (RFC 9460 section 2.2).
#include "egress/dns/answer.hpp"
#include "net/dns/wire_reader.hpp"

namespace opensandbox::egress::dns {

namespace {

constexpr std::uint16_t kEyMandatory = 0;
constexpr std::uint16_t kEyIpv4hint = 4;
constexpr std::uint16_t kEyEch = 5;
constexpr std::uint16_t kEyIpv6hint = 6;

bool is_stripped(std::uint16_t key, bool strip_ech) {
    return key == kEyIpv4hint || key == kEyIpv6hint || (key == kEyEch && strip_ech);
}

bool demands_stripped(std::string_view keys, bool strip_ech) {
    net::dns::WireReader reader(keys, 0);
    while (reader.good() && reader.at() < keys.size()) {
        if (is_stripped(reader.word(), strip_ech)) return true;
    }
    return false;
}

}  // namespace

std::optional<std::string> without_hints(std::string_view data, bool strip_ech) {
    net::dns::WireReader reader(data, 0);
    (void)reader.word();
    // Names in this data must not be compressed.
    for (std::uint8_t size = reader.byte(); reader.good() && size != 0; size = reader.byte()) {
        if (size > 63) return std::nullopt;
        (void)reader.bytes(size);
    }
    if (!reader.good()) return std::nullopt;
    std::string out(data.substr(0, reader.at()));
    while (reader.at() < data.size()) {
        const std::uint16_t key = reader.word();
        const std::string_view value = reader.bytes(reader.word());
        if (!reader.good()) return std::nullopt;
        if (key == kEyMandatory && demands_stripped(value, strip_ech)) return std::nullopt;
        if (is_stripped(key, strip_ech)) continue;
        net::dns::put_word(out, key);
        net::dns::put_word(out, static_cast<std::uint32_t>(value.size()));
        out += value;
    }
    return out;
}

}  // namespace opensandbox::egress::dns
