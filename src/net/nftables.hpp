#pragma once

#include "base/error.hpp"
#include "net/ipv4_range.hpp"
#include "net/ipv6_range.hpp"
#include "net/netlink_socket.hpp"
#include "net/nftables_set.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct nftnl_rule;
struct nftnl_expr;

/// Rules of the kernel's packet filter, built with libnftnl and changed in transactions.
namespace opensandbox::net::nft {

enum class Family : std::uint8_t { inet = 1, arp = 3, netdev = 5 };

/// Where a chain sees packets.
enum class Hook : std::uint8_t {
    prerouting = 0,
    input = 1,
    forward = 2,
    output = 3,
    postrouting = 4,
    arp_input = 0,   ///< of family arp
    arp_output = 1,  ///< of family arp
    egress = 1,      ///< of family netdev: whatever leaves by one link, raw frames too
};

/// States of connection tracking, to be joined with |.
enum ConnectionState : std::uint32_t {
    invalid = 1,
    established = 2,
    related = 4,
    fresh = 8,  ///< the first packet of a connection
};

/// One rule: conditions and then statements, in the order they are called. A packet that fails a
/// condition leaves the rule; what follows a verdict is never reached. A rule that grew beyond
/// `limit` expressions is refused when the transaction is committed.
class Rule {
  public:
    static constexpr std::size_t kLimit = 32;

    Rule();
    Rule(Rule&&) noexcept;
    Rule& operator=(Rule&&) noexcept;
    ~Rule();

    /// The first bytes of the link's name; a whole name is its bytes and a zero.
    Rule& from_interfaces(std::string_view prefix);
    Rule& not_from_interfaces(std::string_view prefix);
    Rule& to_interfaces(std::string_view prefix);
    Rule& not_to_interfaces(std::string_view prefix);

    Rule& is_ipv4();
    Rule& is_ipv6();
    /// IPPROTO_TCP, ...
    Rule& transport(std::uint8_t protocol);
    Rule& not_transport(std::uint8_t protocol);
    /// These two look at IPv4 headers: after is_ipv4 only.
    Rule& source(const Ipv4Address& network, unsigned prefix, bool inside = true);
    Rule& destination(const Ipv4Address& network, unsigned prefix, bool inside = true);
    /// These two look at IPv6 headers: after is_ipv6 only.
    Rule& source(const Ipv6Address& network, unsigned prefix, bool inside = true);
    Rule& destination(const Ipv6Address& network, unsigned prefix, bool inside = true);
    /// Of ICMP and ICMPv6: after transport() only.
    Rule& icmp_type(std::uint8_t type);
    /// Of TCP and UDP: after transport() only.
    Rule& destination_port(std::uint16_t port);
    /// Gives the packet the number that `networks` maps the name of its incoming link to; ends the
    /// rule when it has none. A mark, since nft 1.0.6 cannot list a mapped value within a key.
    Rule& mark_with_network(std::string_view networks);
    Rule& clear_mark();
    /// `members` has the pair of its mark and the name of the link it leaves by.
    Rule& to_member_of_marked(std::string_view members);
    /// From and to which ports, both included; of TCP and UDP: after transport() only.
    Rule& destination_ports(std::uint16_t first, std::uint16_t last);
    /// A TCP segment that does not begin a connection: after transport(IPPROTO_TCP) only.
    Rule& in_midst_of_stream();
    /// A TCP reset: after transport(IPPROTO_TCP) only.
    Rule& resets_stream();
    /// The key put together from these parts is in the set; or is not, without `inside`.
    Rule& in_set(std::span<const KeyPart> key, const SetReference& set, bool inside = true);
    Rule& in_set(KeyPart key, const SetReference& set, bool inside = true);
    /// Continues where the map says; goes on with the next rule when it says nothing.
    Rule& verdict_of(KeyPart key, const SetReference& map);
    Rule& marked(std::uint32_t mark);
    Rule& set_mark(std::uint32_t mark);
    /// The packet's socket was made in this cgroup (its id, the inode's number of its folder) or in
    /// one under it. `level` is how deep that is under the root. In input and output of family
    /// inet.
    Rule& made_in_cgroup(std::uint64_t id, std::uint32_t level);
    /// A process made its socket: not the kernel for itself. In output and later.
    Rule& of_a_process();
    /// It goes the way back of its connection.
    Rule& is_reply();
    /// The key has more connections than so many; the set is one of connections, by this key.
    Rule& more_connections(KeyPart key, const SetReference& set, std::uint32_t limit);
    /// All that this rule sees are more connections than so many.
    Rule& more_connections(std::uint32_t limit);
    /// No more often than so many times a second for this key, after a burst of so many; the set
    /// is dynamic, by this key, and forgets keys in time.
    Rule& not_more_often(KeyPart key, const SetReference& set, std::uint64_t per_second,
                         std::uint32_t burst);
    /// The same for all that this rule sees.
    Rule& not_more_often(std::uint64_t per_second, std::uint32_t burst);
    /// In any of the states.
    Rule& connection(std::uint32_t states);
    /// It is the first packet of its connection, also where more follow before an answer.
    Rule& begins_connection();
    /// Its destination was rewritten.
    Rule& destination_translated();
    /// Its connection carries this number (see mark_connection).
    Rule& of_connection(std::uint32_t mark);
    /// The route to its source does not lead over the link it came by. Not in output or
    /// postrouting.
    Rule& source_not_routed_back();
    /// Its source is no address of this network namespace.
    Rule& source_not_local();

    /// Counts into a named counter of the table.
    Rule& count(std::string_view counter);
    Rule& accept();
    Rule& drop();
    /// Tells readers of this group of nflog about the packet, with its first bytes. A prefix is at
    /// most 127 bytes.
    Rule& log_to_group(std::uint16_t group, std::string_view prefix, std::uint32_t bytes);
    /// Continues in another chain and does not return.
    Rule& go_to(std::string_view chain);
    /// Continues in another chain, and then with the next rule here.
    Rule& jump(std::string_view chain);
    /// Ends TCP connections: after transport(IPPROTO_TCP) only.
    Rule& reject_with_reset();
    /// Answers with ICMP "administratively prohibited" of the packet's own family.
    Rule& reject_as_prohibited();
    /// Notes a number with its connection.
    Rule& mark_connection(std::uint32_t mark);
    /// Connections that begin with such a packet are told apart from those of other zones by where
    /// they come from and go to, however alike that is; what comes back for them needs no zone. In
    /// chains before connection tracking, at -200.
    Rule& track_in_zone(std::uint16_t zone);
    /// Gives the packet the address of the link it leaves by.
    Rule& masquerade();
    /// Sends the connection to this IPv4 address and port instead; in chains of type nat.
    Rule& translate_destination(const Ipv4Address& address, std::uint16_t port);
    /// The same for IPv6.
    Rule& translate_destination(const Ipv6Address& address, std::uint16_t port);
    /// Sends the connection to this port of this host: in output, of the loopback address.
    Rule& redirect(std::uint16_t port);

    [[nodiscard]] bool valid() const { return size_ <= kLimit; }
    [[nodiscard]] nftnl_rule* native() const { return rule_.get(); }

  private:
    struct Free {
        void operator()(nftnl_rule* rule) const;
    };
    nftnl_expr* append(const char* kind);
    Rule& load_meta(std::uint32_t key);
    /// Into the first registers, one after another.
    Rule& load_key(std::span<const KeyPart> key);
    Rule& load_payload(std::uint32_t base, std::uint32_t offset, std::uint32_t size,
                       std::uint32_t to);
    Rule& load_constant(const void* data, std::uint32_t size, std::uint32_t to);
    Rule& update_set(KeyPart key, const SetReference& set, std::uint32_t operation,
                     nftnl_expr* of_element);
    Rule& translate(std::uint32_t family, const void* address, std::uint32_t size,
                    std::uint16_t port);
    Rule& store_mark(std::uint32_t source);
    Rule& load_connection(std::uint32_t key);
    Rule& interface(std::uint32_t key, std::uint32_t operation, std::string_view prefix);
    Rule& mask(std::span<const std::uint8_t> bits);
    Rule& compare(std::uint32_t operation, const void* data, std::size_t size);
    /// A field of a header, as many of its first bits as `prefix` says.
    Rule& field(std::uint32_t offset, std::span<const std::uint8_t> wanted, unsigned prefix,
                bool inside);
    Rule& verdict(int code, std::string_view chain = {});

    std::unique_ptr<nftnl_rule, Free> rule_;
    std::size_t size_ = 0;
};

/// Keys of a set, and for a map what each stands for.
enum class SetKind : std::uint8_t {
    networks,  ///< map of link name to number
    members,   ///< set of (number, link name)
};

/// One element of either kind.
struct SetElement {
    std::string link;  ///< 1 to 15 bytes
    std::uint32_t number = 0;
};

/// A transaction: the kernel applies all of it or nothing, and no packet sees a state between.
/// Names are 1 to 255 bytes. Table, chain and counter names are checked by `commit`.
class Transaction {
  public:
    Transaction();

    /// Success also when it exists.
    void add_table(Family family, std::string_view table);
    /// A table that only the socket that commits this can change, that a foreign flush of the whole
    /// ruleset leaves alone, and that stays when the socket is closed. One whose owner has gone is
    /// taken over. permission_denied when it has another owner, unsupported before Linux 6.9.
    void own_table(Family family, std::string_view table);
    /// Fails when it does not exist, unless it was added earlier in the same transaction.
    void delete_table(Family family, std::string_view table);
    void add_counter(Family family, std::string_view table, std::string_view counter);
    /// A chain that only go_to reaches.
    void add_chain(Family family, std::string_view table, std::string_view chain);
    /// A chain that the kernel calls; lower priorities run first. Packets that no rule decides
    /// about are accepted. `type` is "filter", "nat" or "route".
    void add_base_chain(Family family, std::string_view table, std::string_view chain,
                        const char* type, Hook hook, std::int32_t priority);
    /// A chain of family netdev for what leaves by one link.
    void add_egress_chain(std::string_view table, std::string_view chain, std::string_view link,
                          std::int32_t priority);
    /// Removes a chain that nothing leads to, with its rules.
    void delete_chain(Family family, std::string_view table, std::string_view chain);
    /// Removes all rules of a chain.
    void flush_chain(Family family, std::string_view table, std::string_view chain);

    void add_set(Family family, std::string_view table, std::string_view set,
                 const SetLayout& layout);
    /// A set of one rule of this transaction, gone with it.
    SetReference add_constant_set(Family family, std::string_view table, const SetLayout& layout,
                                  std::span<const Element> elements);
    /// Success also when one is there already, which keeps its lifetime then.
    void add_elements(Family family, std::string_view table, const SetReference& set,
                      const SetLayout& layout, std::span<const Element> elements);
    /// Success also when one is not there. Of a map's element the value must be the one it has.
    /// Not of interval sets.
    void remove_elements(Family family, std::string_view table, std::string_view set,
                         const SetLayout& layout, std::span<const Element> elements);
    /// Whether one is there or not: afterwards it is so, lifetime and comment included. Packets see
    /// no time without it. Neither of maps nor of interval sets.
    void put_elements(Family family, std::string_view table, std::string_view set,
                      const SetLayout& layout, std::span<const Element> elements);

    void add_set(Family family, std::string_view table, std::string_view set, SetKind kind);
    /// Success also when it is there already with the same number.
    void add_element(Family family, std::string_view table, std::string_view set, SetKind kind,
                     const SetElement& element);
    /// Refused when it is not there.
    void delete_element(Family family, std::string_view table, std::string_view set, SetKind kind,
                        const SetElement& element);
    /// At the end of the chain.
    void add_rule(Family family, std::string_view table, std::string_view chain, const Rule& rule);

    /// Sends it, once. The error names the step that was refused.
    Status commit(NetlinkSocket& socket);

  private:
    void append(std::string label, std::uint16_t type, Family family, std::uint16_t flags,
                const std::function<void(nlmsghdr*)>& build);
    void change_element(std::uint16_t type, std::string_view verb, Family family,
                        std::string_view table, std::string_view set, SetKind kind,
                        const SetElement& element);
    void change_elements(std::uint16_t type, std::string_view verb, Family family,
                         std::string_view table, const SetReference& set, const SetLayout& layout,
                         std::span<const Element> elements);
    void finish(const void* message);
    void check_name(std::string_view name);

    std::vector<std::uint8_t> datagram_;
    std::vector<std::string> steps_;  ///< what message n does; its sequence number is n + 1
    std::vector<std::uint8_t> scratch_;
    std::uint32_t sets_ = 0;
    std::optional<Error> failed_;
};

/// How much of it there is under one table name, in all families.
struct TableCounts {
    std::uint32_t tables = 0;
    std::uint32_t chains = 0;
    std::uint32_t rules = 0;
};

Result<TableCounts> count_table(NetlinkSocket& socket, std::string_view table);

/// Names of a table's chains, unordered; none when there is no such table.
Result<std::vector<std::string>> list_chains(NetlinkSocket& socket, Family family,
                                             std::string_view table);

/// All elements of a set; not_found when there is no such set.
Result<std::vector<ListedElement>> list_elements(NetlinkSocket& socket, Family family,
                                                 std::string_view table, std::string_view set);

/// Reads the elements of an NFT_MSG_NEWSETELEM message; malformed ones are left out.
std::vector<ListedElement> parse_elements(NetlinkBytes message);

struct CounterValue {
    std::uint64_t packets = 0;
    std::uint64_t bytes = 0;
};

/// Reads an NFT_MSG_NEWOBJ message about a counter; zero where values are missing.
CounterValue parse_counter(NetlinkBytes message);

/// not_found when there is no such counter.
Result<CounterValue> read_counter(NetlinkSocket& socket, Family family, std::string_view table,
                                  std::string_view counter);

}  // namespace opensandbox::net::nft
