#include "net/nftables.hpp"
#include "net/packet_fields.hpp"

#include <arpa/inet.h>
#include <libnftnl/expr.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_conntrack_tuple_common.h>
#include <linux/netfilter/nf_tables.h>
#include <netinet/tcp.h>

#include <array>
#include <new>

// Rules that look into sets, and those that keep count.
namespace opensandbox::net::nft {

namespace {

constexpr std::uint32_t kLinkNameWords = 4;
constexpr std::uint32_t kIpv6Words = 4;
constexpr std::uint32_t kLastRegister = NFT_REG32_15;

nftnl_expr* make_expression(const char* kind) {
    nftnl_expr* expression = nftnl_expr_alloc(kind);
    if (expression == nullptr) throw std::bad_alloc();
    return expression;
}

/// A name too long would not fit a message; the kernel refuses the short one.
void name_set(nftnl_expr* expression, std::uint16_t name_field, std::uint16_t id_field,
              const SetReference& set) {
    const bool fits = set.name.size() < NFT_NAME_MAXLEN;
    nftnl_expr_set_str(expression, name_field, fits ? set.name.c_str() : "");
    if (set.id != 0) nftnl_expr_set_u32(expression, id_field, set.id);
}

nftnl_expr* connection_count(std::uint32_t limit) {
    auto* expression = make_expression("connlimit");
    nftnl_expr_set_u32(expression, NFTNL_EXPR_CONNLIMIT_COUNT, limit);
    nftnl_expr_set_u32(expression, NFTNL_EXPR_CONNLIMIT_FLAGS, NFT_CONNLIMIT_F_INV);
    return expression;
}

void set_rate(nftnl_expr* expression, std::uint64_t per_second, std::uint32_t burst) {
    nftnl_expr_set_u64(expression, NFTNL_EXPR_LIMIT_RATE, per_second);
    nftnl_expr_set_u64(expression, NFTNL_EXPR_LIMIT_UNIT, 1);
    nftnl_expr_set_u32(expression, NFTNL_EXPR_LIMIT_BURST, burst);
    nftnl_expr_set_u32(expression, NFTNL_EXPR_LIMIT_TYPE, NFT_LIMIT_PKTS);
    nftnl_expr_set_u32(expression, NFTNL_EXPR_LIMIT_FLAGS, 0);
}

}  // namespace

Rule& Rule::load_payload(std::uint32_t base, std::uint32_t offset, std::uint32_t size,
                         std::uint32_t to) {
    auto* expression = append("payload");
    nftnl_expr_set_u32(expression, NFTNL_EXPR_PAYLOAD_BASE, base);
    nftnl_expr_set_u32(expression, NFTNL_EXPR_PAYLOAD_OFFSET, offset);
    nftnl_expr_set_u32(expression, NFTNL_EXPR_PAYLOAD_LEN, size);
    nftnl_expr_set_u32(expression, NFTNL_EXPR_PAYLOAD_DREG, to);
    return *this;
}

Rule& Rule::load_constant(const void* data, std::uint32_t size, std::uint32_t to) {
    auto* expression = append("immediate");
    nftnl_expr_set_u32(expression, NFTNL_EXPR_IMM_DREG, to);
    nftnl_expr_set(expression, NFTNL_EXPR_IMM_DATA, data, size);
    return *this;
}

Rule& Rule::load_key(std::span<const KeyPart> key) {
    using Source = KeyPart::Source;
    std::uint32_t to = NFT_REG32_00;
    const auto meta = [&](std::uint32_t field, std::uint32_t words) {
        auto* expression = append("meta");
        nftnl_expr_set_u32(expression, NFTNL_EXPR_META_KEY, field);
        nftnl_expr_set_u32(expression, NFTNL_EXPR_META_DREG, to);
        to += words;
    };
    const auto network = [&](std::uint32_t offset, std::uint32_t words) {
        load_payload(NFT_PAYLOAD_NETWORK_HEADER, offset, words * 4, to);
        to += words;
    };
    for (const auto& part : key) {
        switch (part.source) {
            case Source::incoming_link: meta(NFT_META_IIFNAME, kLinkNameWords); break;
            case Source::outgoing_link: meta(NFT_META_OIFNAME, kLinkNameWords); break;
            case Source::ipv4_source: network(kIpv4SourceOffset, 1); break;
            case Source::ipv4_destination: network(kIpv4DestinationOffset, 1); break;
            case Source::ipv6_source: network(kIpv6SourceOffset, kIpv6Words); break;
            case Source::ipv6_destination: network(kIpv6DestinationOffset, kIpv6Words); break;
            case Source::protocol: meta(NFT_META_L4PROTO, 1); break;
            case Source::destination_port:
                load_payload(NFT_PAYLOAD_TRANSPORT_HEADER, kDestinationPortOffset, 2, to++);
                break;
            case Source::constant_protocol: {
                const auto protocol = static_cast<std::uint8_t>(part.constant);
                load_constant(&protocol, sizeof(protocol), to++);
                break;
            }
            case Source::constant_port: {
                const std::uint16_t port = htons(part.constant);
                load_constant(&port, sizeof(port), to++);
                break;
            }
        }
    }
    if (to > kLastRegister + 1) size_ = kLimit + 1;  // Refused at commit.
    return *this;
}

Rule& Rule::destination_ports(std::uint16_t first, std::uint16_t last) {
    if (first == last) return destination_port(first);
    load_payload(NFT_PAYLOAD_TRANSPORT_HEADER, kDestinationPortOffset, 2, NFT_REG_1);
    const std::uint16_t low = htons(first);
    const std::uint16_t high = htons(last);
    return compare(NFT_CMP_GTE, &low, sizeof(low)).compare(NFT_CMP_LTE, &high, sizeof(high));
}

Rule& Rule::in_midst_of_stream() {
    constexpr std::uint32_t kFlagsOffset = 13;
    const std::uint8_t looked_at = TH_FIN | TH_SYN | TH_RST | TH_ACK;
    const std::uint8_t opening = TH_SYN;
    return load_payload(NFT_PAYLOAD_TRANSPORT_HEADER, kFlagsOffset, 1, NFT_REG_1)
        .mask({&looked_at, 1})
        .compare(NFT_CMP_NEQ, &opening, sizeof(opening));
}

Rule& Rule::resets_stream() {
    constexpr std::uint32_t kFlagsOffset = 13;
    const std::uint8_t reset = TH_RST;
    return load_payload(NFT_PAYLOAD_TRANSPORT_HEADER, kFlagsOffset, 1, NFT_REG_1)
        .mask({&reset, 1})
        .compare(NFT_CMP_EQ, &reset, sizeof(reset));
}

Rule& Rule::in_set(std::span<const KeyPart> key, const SetReference& set, bool inside) {
    load_key(key);
    auto* expression = append("lookup");
    nftnl_expr_set_u32(expression, NFTNL_EXPR_LOOKUP_SREG, NFT_REG32_00);
    name_set(expression, NFTNL_EXPR_LOOKUP_SET, NFTNL_EXPR_LOOKUP_SET_ID, set);
    if (!inside) nftnl_expr_set_u32(expression, NFTNL_EXPR_LOOKUP_FLAGS, NFT_LOOKUP_F_INV);
    return *this;
}

Rule& Rule::in_set(KeyPart key, const SetReference& set, bool inside) {
    return in_set({&key, 1}, set, inside);
}

Rule& Rule::verdict_of(KeyPart key, const SetReference& map) {
    load_key({&key, 1});
    auto* expression = append("lookup");
    nftnl_expr_set_u32(expression, NFTNL_EXPR_LOOKUP_SREG, NFT_REG32_00);
    nftnl_expr_set_u32(expression, NFTNL_EXPR_LOOKUP_DREG, NFT_REG_VERDICT);
    name_set(expression, NFTNL_EXPR_LOOKUP_SET, NFTNL_EXPR_LOOKUP_SET_ID, map);
    return *this;
}

Rule& Rule::marked(std::uint32_t mark) {
    return load_meta(NFT_META_MARK).compare(NFT_CMP_EQ, &mark, sizeof(mark));
}

Rule& Rule::set_mark(std::uint32_t mark) {
    return load_constant(&mark, sizeof(mark), NFT_REG_1).store_mark(NFT_REG_1);
}

Rule& Rule::made_in_cgroup(std::uint64_t id, std::uint32_t level) {
    auto* expression = append("socket");
    nftnl_expr_set_u32(expression, NFTNL_EXPR_SOCKET_KEY, NFT_SOCKET_CGROUPV2);
    nftnl_expr_set_u32(expression, NFTNL_EXPR_SOCKET_DREG, NFT_REG_1);
    nftnl_expr_set_u32(expression, NFTNL_EXPR_SOCKET_LEVEL, level);
    return compare(NFT_CMP_EQ, &id, sizeof(id));
}

Rule& Rule::of_a_process() {
    // Sockets without an owner have no user at all, which ends the rule.
    const std::uint32_t any = 0;
    return load_meta(NFT_META_SKUID).compare(NFT_CMP_GTE, &any, sizeof(any));
}

Rule& Rule::is_reply() {
    const std::uint8_t reply = IP_CT_DIR_REPLY;
    return load_connection(NFT_CT_DIRECTION).compare(NFT_CMP_EQ, &reply, sizeof(reply));
}

Rule& Rule::mark_connection(std::uint32_t mark) {
    load_constant(&mark, sizeof(mark), NFT_REG_1);
    auto* expression = append("ct");
    nftnl_expr_set_u32(expression, NFTNL_EXPR_CT_KEY, NFT_CT_MARK);
    nftnl_expr_set_u32(expression, NFTNL_EXPR_CT_SREG, NFT_REG_1);
    return *this;
}

Rule& Rule::track_in_zone(std::uint16_t zone) {
    load_constant(&zone, sizeof(zone), NFT_REG_1);
    auto* expression = append("ct");
    nftnl_expr_set_u32(expression, NFTNL_EXPR_CT_KEY, NFT_CT_ZONE);
    nftnl_expr_set_u8(expression, NFTNL_EXPR_CT_DIR, IP_CT_DIR_ORIGINAL);
    nftnl_expr_set_u32(expression, NFTNL_EXPR_CT_SREG, NFT_REG_1);
    return *this;
}

Rule& Rule::update_set(KeyPart key, const SetReference& set, std::uint32_t operation,
                       nftnl_expr* of_element) {
    load_key({&key, 1});
    auto* expression = append("dynset");
    nftnl_expr_set_u32(expression, NFTNL_EXPR_DYNSET_SREG_KEY, NFT_REG32_00);
    nftnl_expr_set_u32(expression, NFTNL_EXPR_DYNSET_OP, operation);
    name_set(expression, NFTNL_EXPR_DYNSET_SET_NAME, NFTNL_EXPR_DYNSET_SET_ID, set);
    nftnl_expr_add_expr(expression, NFTNL_EXPR_DYNSET_EXPRESSIONS, of_element);
    return *this;
}

Rule& Rule::more_connections(KeyPart key, const SetReference& set, std::uint32_t limit) {
    return update_set(key, set, NFT_DYNSET_OP_ADD, connection_count(limit));
}

Rule& Rule::more_connections(std::uint32_t limit) {
    auto* expression = append("connlimit");
    nftnl_expr_set_u32(expression, NFTNL_EXPR_CONNLIMIT_COUNT, limit);
    nftnl_expr_set_u32(expression, NFTNL_EXPR_CONNLIMIT_FLAGS, NFT_CONNLIMIT_F_INV);
    return *this;
}

Rule& Rule::not_more_often(KeyPart key, const SetReference& set, std::uint64_t per_second,
                           std::uint32_t burst) {
    auto* rate = make_expression("limit");
    set_rate(rate, per_second, burst);
    return update_set(key, set, NFT_DYNSET_OP_UPDATE, rate);
}

Rule& Rule::not_more_often(std::uint64_t per_second, std::uint32_t burst) {
    set_rate(append("limit"), per_second, burst);
    return *this;
}

Rule& Rule::log_to_group(std::uint16_t group, std::string_view prefix, std::uint32_t bytes) {
    auto* expression = append("log");
    constexpr std::size_t kLongest = 127;
    nftnl_expr_set_str(expression, NFTNL_EXPR_LOG_PREFIX,
                       std::string(prefix.substr(0, kLongest)).c_str());
    nftnl_expr_set_u16(expression, NFTNL_EXPR_LOG_GROUP, group);
    nftnl_expr_set_u32(expression, NFTNL_EXPR_LOG_SNAPLEN, bytes);
    return *this;
}

}  // namespace opensandbox::net::nft
