#include "net/nftables.hpp"
#include "net/packet_fields.hpp"

#include <libnftnl/expr.h>
#include <libnftnl/rule.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_nat.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <new>

namespace opensandbox::net::nft {

namespace {

/// Behind the first 16 bytes of registers: a number of four bytes and, right after it, a name.
constexpr std::uint32_t kNumberRegister = NFT_REG32_04;
constexpr std::uint32_t kNameRegister = NFT_REG32_05;

/// In the order they have in memory.
std::span<const std::uint8_t> bytes_of(const std::uint32_t& bits) {
    return {reinterpret_cast<const std::uint8_t*>(&bits), sizeof(bits)};
}

static_assert(ConnectionState::invalid == NF_CT_STATE_INVALID_BIT);
static_assert(ConnectionState::established == NF_CT_STATE_BIT(IP_CT_ESTABLISHED));
static_assert(ConnectionState::related == NF_CT_STATE_BIT(IP_CT_RELATED));
static_assert(ConnectionState::fresh == NF_CT_STATE_BIT(IP_CT_NEW));

}  // namespace

void Rule::Free::operator()(nftnl_rule* rule) const {
    nftnl_rule_free(rule);
}

Rule::Rule() : rule_(nftnl_rule_alloc()) {
    if (!rule_) throw std::bad_alloc();
}
Rule::Rule(Rule&&) noexcept = default;
Rule& Rule::operator=(Rule&&) noexcept = default;
Rule::~Rule() = default;

nftnl_expr* Rule::append(const char* kind) {
    nftnl_expr* expression = nftnl_expr_alloc(kind);
    if (expression == nullptr) throw std::bad_alloc();
    nftnl_rule_add_expr(rule_.get(), expression);  // The rule owns it from here.
    ++size_;
    return expression;
}

Rule& Rule::load_meta(std::uint32_t key) {
    auto* expression = append("meta");
    nftnl_expr_set_u32(expression, NFTNL_EXPR_META_KEY, key);
    nftnl_expr_set_u32(expression, NFTNL_EXPR_META_DREG, NFT_REG_1);
    return *this;
}

Rule& Rule::compare(std::uint32_t operation, const void* data, std::size_t size) {
    auto* expression = append("cmp");
    nftnl_expr_set_u32(expression, NFTNL_EXPR_CMP_SREG, NFT_REG_1);
    nftnl_expr_set_u32(expression, NFTNL_EXPR_CMP_OP, operation);
    nftnl_expr_set(expression, NFTNL_EXPR_CMP_DATA, data, static_cast<std::uint32_t>(size));
    return *this;
}

/// Keeps only these bits of a value.
Rule& Rule::mask(std::span<const std::uint8_t> bits) {
    const std::array<std::uint8_t, 16> flip{};
    const auto size = static_cast<std::uint32_t>(bits.size());
    auto* expression = append("bitwise");
    nftnl_expr_set_u32(expression, NFTNL_EXPR_BITWISE_SREG, NFT_REG_1);
    nftnl_expr_set_u32(expression, NFTNL_EXPR_BITWISE_DREG, NFT_REG_1);
    nftnl_expr_set_u32(expression, NFTNL_EXPR_BITWISE_LEN, size);
    nftnl_expr_set(expression, NFTNL_EXPR_BITWISE_MASK, bits.data(), size);
    nftnl_expr_set(expression, NFTNL_EXPR_BITWISE_XOR, flip.data(), size);
    return *this;
}

/// Comparing fewer bytes than the 16 of the name is what makes it a prefix.
Rule& Rule::interface(std::uint32_t key, std::uint32_t operation, std::string_view prefix) {
    return load_meta(key).compare(operation, prefix.data(), prefix.size());
}

Rule& Rule::from_interfaces(std::string_view prefix) {
    return interface(NFT_META_IIFNAME, NFT_CMP_EQ, prefix);
}
Rule& Rule::not_from_interfaces(std::string_view prefix) {
    return interface(NFT_META_IIFNAME, NFT_CMP_NEQ, prefix);
}
Rule& Rule::to_interfaces(std::string_view prefix) {
    return interface(NFT_META_OIFNAME, NFT_CMP_EQ, prefix);
}
Rule& Rule::not_to_interfaces(std::string_view prefix) {
    return interface(NFT_META_OIFNAME, NFT_CMP_NEQ, prefix);
}

Rule& Rule::is_ipv4() {
    const std::uint8_t family = NFPROTO_IPV4;
    return load_meta(NFT_META_NFPROTO).compare(NFT_CMP_EQ, &family, sizeof(family));
}

Rule& Rule::is_ipv6() {
    const std::uint8_t family = NFPROTO_IPV6;
    return load_meta(NFT_META_NFPROTO).compare(NFT_CMP_EQ, &family, sizeof(family));
}

Rule& Rule::transport(std::uint8_t protocol) {
    return load_meta(NFT_META_L4PROTO).compare(NFT_CMP_EQ, &protocol, sizeof(protocol));
}

Rule& Rule::not_transport(std::uint8_t protocol) {
    return load_meta(NFT_META_L4PROTO).compare(NFT_CMP_NEQ, &protocol, sizeof(protocol));
}

Rule& Rule::field(std::uint32_t offset, std::span<const std::uint8_t> wanted, unsigned prefix,
                  bool inside) {
    auto* expression = append("payload");
    const auto size = static_cast<std::uint32_t>(wanted.size());
    nftnl_expr_set_u32(expression, NFTNL_EXPR_PAYLOAD_BASE, NFT_PAYLOAD_NETWORK_HEADER);
    nftnl_expr_set_u32(expression, NFTNL_EXPR_PAYLOAD_OFFSET, offset);
    nftnl_expr_set_u32(expression, NFTNL_EXPR_PAYLOAD_LEN, size);
    nftnl_expr_set_u32(expression, NFTNL_EXPR_PAYLOAD_DREG, NFT_REG_1);
    std::array<std::uint8_t, 16> bits{};
    std::array<std::uint8_t, 16> value{};
    for (std::size_t i = 0; i < size; ++i) {
        const unsigned kept = prefix > i * 8 ? std::min<unsigned>(prefix - i * 8, 8) : 0;
        bits[i] = static_cast<std::uint8_t>(0xff00U >> kept);
        value[i] = wanted[i] & bits[i];
    }
    if (prefix < size * 8) mask({bits.data(), size});
    return compare(inside ? NFT_CMP_EQ : NFT_CMP_NEQ, value.data(), size);
}

Rule& Rule::source(const Ipv4Address& network, unsigned prefix, bool inside) {
    return field(kIpv4SourceOffset, network.to_bytes(), prefix, inside);
}

Rule& Rule::destination(const Ipv4Address& network, unsigned prefix, bool inside) {
    return field(kIpv4DestinationOffset, network.to_bytes(), prefix, inside);
}

Rule& Rule::source(const Ipv6Address& network, unsigned prefix, bool inside) {
    return field(kIpv6SourceOffset, network.to_bytes(), prefix, inside);
}

Rule& Rule::destination(const Ipv6Address& network, unsigned prefix, bool inside) {
    return field(kIpv6DestinationOffset, network.to_bytes(), prefix, inside);
}

Rule& Rule::icmp_type(std::uint8_t type) {
    auto* expression = append("payload");
    nftnl_expr_set_u32(expression, NFTNL_EXPR_PAYLOAD_BASE, NFT_PAYLOAD_TRANSPORT_HEADER);
    nftnl_expr_set_u32(expression, NFTNL_EXPR_PAYLOAD_OFFSET, 0);
    nftnl_expr_set_u32(expression, NFTNL_EXPR_PAYLOAD_LEN, sizeof(type));
    nftnl_expr_set_u32(expression, NFTNL_EXPR_PAYLOAD_DREG, NFT_REG_1);
    return compare(NFT_CMP_EQ, &type, sizeof(type));
}

Rule& Rule::destination_port(std::uint16_t port) {
    auto* expression = append("payload");
    nftnl_expr_set_u32(expression, NFTNL_EXPR_PAYLOAD_BASE, NFT_PAYLOAD_TRANSPORT_HEADER);
    nftnl_expr_set_u32(expression, NFTNL_EXPR_PAYLOAD_OFFSET, kDestinationPortOffset);
    nftnl_expr_set_u32(expression, NFTNL_EXPR_PAYLOAD_LEN, sizeof(port));
    nftnl_expr_set_u32(expression, NFTNL_EXPR_PAYLOAD_DREG, NFT_REG_1);
    const std::uint16_t wanted = htons(port);
    return compare(NFT_CMP_EQ, &wanted, sizeof(wanted));
}

Rule& Rule::store_mark(std::uint32_t source) {
    auto* expression = append("meta");
    nftnl_expr_set_u32(expression, NFTNL_EXPR_META_KEY, NFT_META_MARK);
    nftnl_expr_set_u32(expression, NFTNL_EXPR_META_SREG, source);
    return *this;
}

Rule& Rule::clear_mark() {
    auto* zero = append("immediate");
    nftnl_expr_set_u32(zero, NFTNL_EXPR_IMM_DREG, NFT_REG_1);
    nftnl_expr_set_u32(zero, NFTNL_EXPR_IMM_DATA, 0);
    return store_mark(NFT_REG_1);
}

Rule& Rule::mark_with_network(std::string_view networks) {
    load_meta(NFT_META_IIFNAME);
    auto* number = append("lookup");
    nftnl_expr_set_u32(number, NFTNL_EXPR_LOOKUP_SREG, NFT_REG_1);
    nftnl_expr_set_u32(number, NFTNL_EXPR_LOOKUP_DREG, NFT_REG_1);
    nftnl_expr_set_str(number, NFTNL_EXPR_LOOKUP_SET, std::string(networks).c_str());
    return store_mark(NFT_REG_1);
}

Rule& Rule::to_member_of_marked(std::string_view members) {
    auto* number = append("meta");
    nftnl_expr_set_u32(number, NFTNL_EXPR_META_KEY, NFT_META_MARK);
    nftnl_expr_set_u32(number, NFTNL_EXPR_META_DREG, kNumberRegister);
    auto* name = append("meta");
    nftnl_expr_set_u32(name, NFTNL_EXPR_META_KEY, NFT_META_OIFNAME);
    nftnl_expr_set_u32(name, NFTNL_EXPR_META_DREG, kNameRegister);
    auto* member = append("lookup");
    nftnl_expr_set_u32(member, NFTNL_EXPR_LOOKUP_SREG, kNumberRegister);
    nftnl_expr_set_str(member, NFTNL_EXPR_LOOKUP_SET, std::string(members).c_str());
    return *this;
}

Rule& Rule::load_connection(std::uint32_t key) {
    auto* expression = append("ct");
    nftnl_expr_set_u32(expression, NFTNL_EXPR_CT_KEY, key);
    nftnl_expr_set_u32(expression, NFTNL_EXPR_CT_DREG, NFT_REG_1);
    return *this;
}

Rule& Rule::connection(std::uint32_t states) {
    const std::uint32_t none = 0;
    return load_connection(NFT_CT_STATE)
        .mask(bytes_of(states))
        .compare(NFT_CMP_NEQ, &none, sizeof(none));
}

Rule& Rule::begins_connection() {
    const std::uint32_t none = 0;
    const std::uint32_t confirmed = IPS_CONFIRMED;
    return connection(fresh)
        .load_connection(NFT_CT_STATUS)
        .mask(bytes_of(confirmed))
        .compare(NFT_CMP_EQ, &none, sizeof(none));
}

Rule& Rule::destination_translated() {
    const std::uint32_t none = 0;
    const std::uint32_t translated = IPS_DST_NAT;
    return load_connection(NFT_CT_STATUS)
        .mask(bytes_of(translated))
        .compare(NFT_CMP_NEQ, &none, sizeof(none));
}

Rule& Rule::of_connection(std::uint32_t mark) {
    return load_connection(NFT_CT_MARK).compare(NFT_CMP_EQ, &mark, sizeof(mark));
}

Rule& Rule::source_not_routed_back() {
    auto* expression = append("fib");
    nftnl_expr_set_u32(expression, NFTNL_EXPR_FIB_DREG, NFT_REG_1);
    nftnl_expr_set_u32(expression, NFTNL_EXPR_FIB_RESULT, NFT_FIB_RESULT_OIF);
    nftnl_expr_set_u32(expression, NFTNL_EXPR_FIB_FLAGS, NFTA_FIB_F_SADDR | NFTA_FIB_F_IIF);
    const std::uint32_t no_link = 0;
    return compare(NFT_CMP_EQ, &no_link, sizeof(no_link));
}

Rule& Rule::source_not_local() {
    auto* expression = append("fib");
    nftnl_expr_set_u32(expression, NFTNL_EXPR_FIB_DREG, NFT_REG_1);
    nftnl_expr_set_u32(expression, NFTNL_EXPR_FIB_RESULT, NFT_FIB_RESULT_ADDRTYPE);
    nftnl_expr_set_u32(expression, NFTNL_EXPR_FIB_FLAGS, NFTA_FIB_F_SADDR);
    const std::uint32_t local = RTN_LOCAL;
    return compare(NFT_CMP_NEQ, &local, sizeof(local));
}

Rule& Rule::count(std::string_view counter) {
    auto* expression = append("objref");
    nftnl_expr_set_u32(expression, NFTNL_EXPR_OBJREF_IMM_TYPE, NFT_OBJECT_COUNTER);
    nftnl_expr_set_str(expression, NFTNL_EXPR_OBJREF_IMM_NAME, std::string(counter).c_str());
    return *this;
}

Rule& Rule::verdict(int code, std::string_view chain) {
    auto* expression = append("immediate");
    nftnl_expr_set_u32(expression, NFTNL_EXPR_IMM_DREG, NFT_REG_VERDICT);
    nftnl_expr_set_u32(expression, NFTNL_EXPR_IMM_VERDICT, static_cast<std::uint32_t>(code));
    if (!chain.empty())
        nftnl_expr_set_str(expression, NFTNL_EXPR_IMM_CHAIN, std::string(chain).c_str());
    return *this;
}

Rule& Rule::accept() {
    return verdict(NF_ACCEPT);
}

Rule& Rule::drop() {
    return verdict(NF_DROP);
}

Rule& Rule::go_to(std::string_view chain) {
    return verdict(NFT_GOTO, chain);
}

Rule& Rule::jump(std::string_view chain) {
    return verdict(NFT_JUMP, chain);
}

Rule& Rule::reject_with_reset() {
    auto* expression = append("reject");
    nftnl_expr_set_u32(expression, NFTNL_EXPR_REJECT_TYPE, NFT_REJECT_TCP_RST);
    nftnl_expr_set_u8(expression, NFTNL_EXPR_REJECT_CODE, 0);
    return *this;
}

Rule& Rule::reject_as_prohibited() {
    auto* expression = append("reject");
    nftnl_expr_set_u32(expression, NFTNL_EXPR_REJECT_TYPE, NFT_REJECT_ICMPX_UNREACH);
    nftnl_expr_set_u8(expression, NFTNL_EXPR_REJECT_CODE, NFT_REJECT_ICMPX_ADMIN_PROHIBITED);
    return *this;
}

Rule& Rule::masquerade() {
    append("masq");
    return *this;
}

Rule& Rule::translate(std::uint32_t family, const void* address, std::uint32_t size,
                      std::uint16_t port) {
    const std::uint16_t target_port = htons(port);
    load_constant(address, size, NFT_REG_1)
        .load_constant(&target_port, sizeof(target_port), NFT_REG_2);
    auto* expression = append("nat");
    nftnl_expr_set_u32(expression, NFTNL_EXPR_NAT_TYPE, NFT_NAT_DNAT);
    nftnl_expr_set_u32(expression, NFTNL_EXPR_NAT_FAMILY, family);
    nftnl_expr_set_u32(expression, NFTNL_EXPR_NAT_REG_ADDR_MIN, NFT_REG_1);
    nftnl_expr_set_u32(expression, NFTNL_EXPR_NAT_REG_PROTO_MIN, NFT_REG_2);
    return *this;
}

Rule& Rule::translate_destination(const Ipv4Address& address, std::uint16_t port) {
    const auto bytes = address.to_bytes();
    return translate(NFPROTO_IPV4, bytes.data(), bytes.size(), port);
}

Rule& Rule::translate_destination(const Ipv6Address& address, std::uint16_t port) {
    const auto bytes = address.to_bytes();
    return translate(NFPROTO_IPV6, bytes.data(), bytes.size(), port);
}

Rule& Rule::redirect(std::uint16_t port) {
    const std::uint16_t target = htons(port);
    load_constant(&target, sizeof(target), NFT_REG_1);
    auto* expression = append("redir");
    nftnl_expr_set_u32(expression, NFTNL_EXPR_REDIR_REG_PROTO_MIN, NFT_REG_1);
    return *this;
}

}  // namespace opensandbox::net::nft
