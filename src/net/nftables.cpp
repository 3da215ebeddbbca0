#include "net/nftables.hpp"

#include <libmnl/libmnl.h>
#include <libnftnl/chain.h>
#include <libnftnl/common.h>
#include <libnftnl/object.h>
#include <libnftnl/rule.h>
#include <libnftnl/set.h>
#include <libnftnl/table.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter_arp.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

namespace opensandbox::net::nft {

namespace {

/// libnftnl writes messages without a bound. The largest is a rule: Rule::limit expressions, each
/// with at most one name of 255 bytes and a few integers.
constexpr std::size_t kMessageRoom = 32768;

static_assert(static_cast<int>(Family::inet) == NFPROTO_INET);
static_assert(static_cast<int>(Family::arp) == NFPROTO_ARP);
static_assert(static_cast<int>(Hook::arp_input) == NF_ARP_IN);
static_assert(static_cast<int>(Hook::postrouting) == NF_INET_POST_ROUTING);

/// An object of libnftnl with the function that frees it.
template <class T, void (*Release)(const T*)>
struct Releaser {
    void operator()(T* object) const { Release(object); }
};
using Table = std::unique_ptr<nftnl_table, Releaser<nftnl_table, nftnl_table_free>>;
using Chain = std::unique_ptr<nftnl_chain, Releaser<nftnl_chain, nftnl_chain_free>>;
using Set = std::unique_ptr<nftnl_set, Releaser<nftnl_set, nftnl_set_free>>;
using Object = std::unique_ptr<nftnl_obj, Releaser<nftnl_obj, nftnl_obj_free>>;

template <class Pointer>
Pointer allocated(typename Pointer::pointer object) {
    if (object == nullptr) throw std::bad_alloc();
    return Pointer(object);
}

Table make_table(Family family, std::string_view name) {
    auto table = allocated<Table>(nftnl_table_alloc());
    nftnl_table_set_u32(table.get(), NFTNL_TABLE_FAMILY, static_cast<std::uint32_t>(family));
    nftnl_table_set_str(table.get(), NFTNL_TABLE_NAME, std::string(name).c_str());
    return table;
}

Chain make_chain(Family family, std::string_view table, std::string_view name) {
    auto chain = allocated<Chain>(nftnl_chain_alloc());
    nftnl_chain_set_u32(chain.get(), NFTNL_CHAIN_FAMILY, static_cast<std::uint32_t>(family));
    nftnl_chain_set_str(chain.get(), NFTNL_CHAIN_TABLE, std::string(table).c_str());
    nftnl_chain_set_str(chain.get(), NFTNL_CHAIN_NAME, std::string(name).c_str());
    return chain;
}

// What the tools call the values of a set, so that they can list it: of nft's datatype.h.
constexpr std::uint32_t kTypeMark = 19;
constexpr std::uint32_t kTypeLinkName = 41;
constexpr std::uint32_t kTypeBits = 6;
constexpr std::size_t kLinkNameSize = 16;

Set make_set(Family family, std::string_view table, std::string_view name) {
    auto set = allocated<Set>(nftnl_set_alloc());
    nftnl_set_set_u32(set.get(), NFTNL_SET_FAMILY, static_cast<std::uint32_t>(family));
    nftnl_set_set_str(set.get(), NFTNL_SET_TABLE, std::string(table).c_str());
    nftnl_set_set_str(set.get(), NFTNL_SET_NAME, std::string(name).c_str());
    return set;
}

constexpr std::uint16_t message_type(std::uint16_t type) {
    return static_cast<std::uint16_t>(NFNL_SUBSYS_NFTABLES << 8 | type);
}

std::string quoted(std::string_view name) {
    return '"' + std::string(name) + '"';
}

/// Asks for every table, chain or rule and counts those under this table name.
Result<std::uint32_t> count_objects(NetlinkSocket& socket, std::uint16_t type,
                                    std::uint16_t name_attribute, std::string_view table) {
    NetlinkMessage request(message_type(type), NLM_F_DUMP);
    request.header<nfgenmsg>().nfgen_family = NFPROTO_UNSPEC;
    auto answer = socket.exchange(request, "list nftables objects");
    if (!answer) return answer.error();
    std::uint32_t count = 0;
    split_netlink_datagram(*answer, [&](NetlinkBytes message) {
        const auto begin = MNL_NLMSG_HDRLEN + MNL_ALIGN(sizeof(nfgenmsg));
        if (message.size() < begin) return true;
        const auto name = find_netlink_attribute(message.subspan(begin), name_attribute);
        if (name && netlink_text(*name, NFT_NAME_MAXLEN) == table) ++count;
        return true;
    });
    return count;
}

std::uint64_t big_endian(std::optional<NetlinkBytes> bytes) {
    std::uint64_t value = 0;
    if (bytes && bytes->size() == sizeof(value))
        for (const auto byte : *bytes)
            value = value << 8 | byte;
    return value;
}

}  // namespace

Transaction::Transaction() : scratch_(kMessageRoom) {
    steps_.emplace_back("begin");
    finish(nftnl_batch_begin(reinterpret_cast<char*>(scratch_.data()), 1));
}

void Transaction::finish(const void* message) {
    const auto* bytes = static_cast<const std::uint8_t*>(message);
    const auto length = static_cast<const nlmsghdr*>(message)->nlmsg_len;
    datagram_.insert(datagram_.end(), bytes, bytes + length);
    datagram_.resize(MNL_ALIGN(datagram_.size()));
}

void Transaction::check_name(std::string_view name) {
    const bool has_zero = name.find('\0') != std::string_view::npos;
    if (name.empty() || name.size() >= NFT_NAME_MAXLEN || has_zero)
        failed_ = Error(ErrorCode::invalid_argument,
                        "nftables name " + quoted(name) + ": must be 1 to 255 bytes");
}

void Transaction::append(std::string label, std::uint16_t type, Family family, std::uint16_t flags,
                         const std::function<void(nlmsghdr*)>& build) {
    if (failed_) return;
    steps_.push_back(std::move(label));
    nlmsghdr* message = nftnl_nlmsg_build_hdr(reinterpret_cast<char*>(scratch_.data()), type,
                                              static_cast<std::uint16_t>(family), flags,
                                              static_cast<std::uint32_t>(steps_.size()));
    build(message);
    finish(message);
}

void Transaction::add_table(Family family, std::string_view table) {
    check_name(table);
    append("add table " + quoted(table), NFT_MSG_NEWTABLE, family, NLM_F_CREATE, [&](nlmsghdr* m) {
        nftnl_table_nlmsg_build_payload(m, make_table(family, table).get());
    });
}

void Transaction::own_table(Family family, std::string_view table) {
    constexpr std::uint32_t kOwnerAndPersist = 2 | 4;  // NFT_TABLE_F_OWNER, NFT_TABLE_F_PERSIST
    check_name(table);
    append("own table " + quoted(table), NFT_MSG_NEWTABLE, family, NLM_F_CREATE, [&](nlmsghdr* m) {
        const auto object = make_table(family, table);
        nftnl_table_set_u32(object.get(), NFTNL_TABLE_FLAGS, kOwnerAndPersist);
        nftnl_table_nlmsg_build_payload(m, object.get());
    });
}

void Transaction::delete_table(Family family, std::string_view table) {
    check_name(table);
    append("delete table " + quoted(table), NFT_MSG_DELTABLE, family, 0, [&](nlmsghdr* m) {
        nftnl_table_nlmsg_build_payload(m, make_table(family, table).get());
    });
}

void Transaction::add_counter(Family family, std::string_view table, std::string_view counter) {
    check_name(table);
    check_name(counter);
    append(
        "add counter " + quoted(counter), NFT_MSG_NEWOBJ, family, NLM_F_CREATE, [&](nlmsghdr* m) {
            auto object = allocated<Object>(nftnl_obj_alloc());
            nftnl_obj_set_u32(object.get(), NFTNL_OBJ_FAMILY, static_cast<std::uint32_t>(family));
            nftnl_obj_set_u32(object.get(), NFTNL_OBJ_TYPE, NFT_OBJECT_COUNTER);
            nftnl_obj_set_str(object.get(), NFTNL_OBJ_TABLE, std::string(table).c_str());
            nftnl_obj_set_str(object.get(), NFTNL_OBJ_NAME, std::string(counter).c_str());
            nftnl_obj_nlmsg_build_payload(m, object.get());
        });
}

void Transaction::add_chain(Family family, std::string_view table, std::string_view chain) {
    check_name(table);
    check_name(chain);
    append("add chain " + quoted(chain), NFT_MSG_NEWCHAIN, family, NLM_F_CREATE, [&](nlmsghdr* m) {
        nftnl_chain_nlmsg_build_payload(m, make_chain(family, table, chain).get());
    });
}

void Transaction::add_base_chain(Family family, std::string_view table, std::string_view name,
                                 const char* type, Hook hook, std::int32_t priority) {
    check_name(table);
    check_name(name);
    append("add chain " + quoted(name), NFT_MSG_NEWCHAIN, family, NLM_F_CREATE, [&](nlmsghdr* m) {
        const auto chain = make_chain(family, table, name);
        nftnl_chain_set_str(chain.get(), NFTNL_CHAIN_TYPE, type);
        nftnl_chain_set_u32(chain.get(), NFTNL_CHAIN_HOOKNUM, static_cast<std::uint32_t>(hook));
        nftnl_chain_set_s32(chain.get(), NFTNL_CHAIN_PRIO, priority);
        nftnl_chain_set_u32(chain.get(), NFTNL_CHAIN_POLICY, NF_ACCEPT);
        nftnl_chain_nlmsg_build_payload(m, chain.get());
    });
}

void Transaction::add_egress_chain(std::string_view table, std::string_view name,
                                   std::string_view link, std::int32_t priority) {
    check_name(table);
    check_name(name);
    append("add chain " + quoted(name), NFT_MSG_NEWCHAIN, Family::netdev, NLM_F_CREATE,
           [&](nlmsghdr* m) {
               const auto chain = make_chain(Family::netdev, table, name);
               nftnl_chain_set_str(chain.get(), NFTNL_CHAIN_TYPE, "filter");
               nftnl_chain_set_u32(chain.get(), NFTNL_CHAIN_HOOKNUM,
                                   static_cast<std::uint32_t>(Hook::egress));
               nftnl_chain_set_s32(chain.get(), NFTNL_CHAIN_PRIO, priority);
               nftnl_chain_set_str(chain.get(), NFTNL_CHAIN_DEV, std::string(link).c_str());
               nftnl_chain_set_u32(chain.get(), NFTNL_CHAIN_POLICY, NF_ACCEPT);
               nftnl_chain_nlmsg_build_payload(m, chain.get());
           });
}

void Transaction::delete_chain(Family family, std::string_view table, std::string_view chain) {
    check_name(table);
    check_name(chain);
    append("delete chain " + quoted(chain), NFT_MSG_DELCHAIN, family, 0, [&](nlmsghdr* m) {
        nftnl_chain_nlmsg_build_payload(m, make_chain(family, table, chain).get());
    });
}

void Transaction::flush_chain(Family family, std::string_view table, std::string_view chain) {
    check_name(table);
    check_name(chain);
    append("flush chain " + quoted(chain), NFT_MSG_DELRULE, family, 0, [&](nlmsghdr* m) {
        const Rule none;
        auto* native = none.native();
        nftnl_rule_set_u32(native, NFTNL_RULE_FAMILY, static_cast<std::uint32_t>(family));
        nftnl_rule_set_str(native, NFTNL_RULE_TABLE, std::string(table).c_str());
        nftnl_rule_set_str(native, NFTNL_RULE_CHAIN, std::string(chain).c_str());
        nftnl_rule_nlmsg_build_payload(m, native);
    });
}

void Transaction::add_set(Family family, std::string_view table, std::string_view name,
                          SetKind kind) {
    check_name(table);
    check_name(name);
    append("add set " + quoted(name), NFT_MSG_NEWSET, family, NLM_F_CREATE, [&](nlmsghdr* m) {
        const auto set = make_set(family, table, name);
        nftnl_set_set_u32(set.get(), NFTNL_SET_ID, ++sets_);
        if (kind == SetKind::networks) {
            nftnl_set_set_u32(set.get(), NFTNL_SET_FLAGS, NFT_SET_MAP);
            nftnl_set_set_u32(set.get(), NFTNL_SET_KEY_TYPE, kTypeLinkName);
            nftnl_set_set_u32(set.get(), NFTNL_SET_KEY_LEN, kLinkNameSize);
            nftnl_set_set_u32(set.get(), NFTNL_SET_DATA_TYPE, kTypeMark);
            nftnl_set_set_u32(set.get(), NFTNL_SET_DATA_LEN, sizeof(std::uint32_t));
        } else {
            nftnl_set_set_u32(set.get(), NFTNL_SET_FLAGS, 0);
            nftnl_set_set_u32(set.get(), NFTNL_SET_KEY_TYPE,
                              kTypeMark << kTypeBits | kTypeLinkName);
            nftnl_set_set_u32(set.get(), NFTNL_SET_KEY_LEN, sizeof(std::uint32_t) + kLinkNameSize);
        }
        nftnl_set_nlmsg_build_payload(m, set.get());
    });
}

void Transaction::change_element(std::uint16_t type, std::string_view verb, Family family,
                                 std::string_view table, std::string_view name, SetKind kind,
                                 const SetElement& element) {
    check_name(table);
    check_name(name);
    if (element.link.empty() || element.link.size() >= kLinkNameSize)
        failed_ = Error(ErrorCode::invalid_argument,
                        "nftables element " + quoted(element.link) + ": must be a link's name");
    append(std::string(verb) + " " + quoted(element.link) + " of set " + quoted(name), type, family,
           type == NFT_MSG_NEWSETELEM ? NLM_F_CREATE : std::uint16_t{0}, [&](nlmsghdr* m) {
               const auto set = make_set(family, table, name);
               std::array<char, sizeof(std::uint32_t) + kLinkNameSize> key{};
               const std::size_t at = kind == SetKind::members ? sizeof(element.number) : 0;
               if (at > 0) std::memcpy(key.data(), &element.number, sizeof(element.number));
               std::ranges::copy(element.link, key.begin() + static_cast<std::ptrdiff_t>(at));
               auto* item = nftnl_set_elem_alloc();
               if (item == nullptr) throw std::bad_alloc();
               nftnl_set_elem_set(item, NFTNL_SET_ELEM_KEY, key.data(),
                                  static_cast<std::uint32_t>(at + kLinkNameSize));
               if (kind == SetKind::networks)
                   nftnl_set_elem_set(item, NFTNL_SET_ELEM_DATA, &element.number,
                                      sizeof(element.number));
               nftnl_set_elem_add(set.get(), item);  // The set owns it from here.
               nftnl_set_elems_nlmsg_build_payload(m, set.get());
           });
}

void Transaction::add_element(Family family, std::string_view table, std::string_view set,
                              SetKind kind, const SetElement& element) {
    change_element(NFT_MSG_NEWSETELEM, "add", family, table, set, kind, element);
}

void Transaction::delete_element(Family family, std::string_view table, std::string_view set,
                                 SetKind kind, const SetElement& element) {
    change_element(NFT_MSG_DELSETELEM, "delete", family, table, set, kind, element);
}

void Transaction::add_rule(Family family, std::string_view table, std::string_view chain,
                           const Rule& rule) {
    check_name(table);
    check_name(chain);
    if (!rule.valid()) failed_ = Error(ErrorCode::invalid_argument, "nftables rule is too long");
    append("add rule " + std::to_string(steps_.size()) + " to chain " + quoted(chain),
           NFT_MSG_NEWRULE, family, NLM_F_CREATE | NLM_F_APPEND, [&](nlmsghdr* m) {
               auto* native = rule.native();
               nftnl_rule_set_u32(native, NFTNL_RULE_FAMILY, static_cast<std::uint32_t>(family));
               nftnl_rule_set_str(native, NFTNL_RULE_TABLE, std::string(table).c_str());
               nftnl_rule_set_str(native, NFTNL_RULE_CHAIN, std::string(chain).c_str());
               nftnl_rule_nlmsg_build_payload(m, native);
           });
}

Status Transaction::commit(NetlinkSocket& socket) {
    if (failed_) return *failed_;
    // One acknowledgement is enough: refused messages are answered in any case.
    const auto last = static_cast<std::uint32_t>(steps_.size());
    split_netlink_datagram(datagram_, [&](NetlinkBytes message) {
        auto* head = reinterpret_cast<nlmsghdr*>(const_cast<std::uint8_t*>(message.data()));
        if (head->nlmsg_seq == last) head->nlmsg_flags |= NLM_F_ACK;
        return true;
    });
    finish(nftnl_batch_end(reinterpret_cast<char*>(scratch_.data()), last + 1));

    auto verdicts = socket.transact(datagram_, "nftables transaction");
    if (!verdicts) return verdicts.error();
    const auto refused = std::ranges::find_if(
        *verdicts, [](const NetlinkVerdict& verdict) { return verdict.error != 0; });
    if (refused != verdicts->end()) {
        const auto step = refused->sequence;
        const auto& label = step >= 1 && step <= last ? steps_[step - 1] : steps_.front();
        return netlink_error(*refused, "nftables transaction: " + label);
    }
    const bool acknowledged =
        last == 1 || std::ranges::any_of(*verdicts, [&](const NetlinkVerdict& verdict) {
            return verdict.sequence == last;
        });
    if (!acknowledged)
        return Error(ErrorCode::protocol, "nftables transaction: the kernel did not acknowledge");
    return {};
}

Result<TableCounts> count_table(NetlinkSocket& socket, std::string_view table) {
    const auto tables = count_objects(socket, NFT_MSG_GETTABLE, NFTA_TABLE_NAME, table);
    if (!tables) return tables.error();
    const auto chains = count_objects(socket, NFT_MSG_GETCHAIN, NFTA_CHAIN_TABLE, table);
    if (!chains) return chains.error();
    const auto rules = count_objects(socket, NFT_MSG_GETRULE, NFTA_RULE_TABLE, table);
    if (!rules) return rules.error();
    return TableCounts{*tables, *chains, *rules};
}

CounterValue parse_counter(NetlinkBytes message) {
    const auto begin = MNL_NLMSG_HDRLEN + MNL_ALIGN(sizeof(nfgenmsg));
    if (message.size() < begin) return {};
    const auto data = find_netlink_attribute(message.subspan(begin), NFTA_OBJ_DATA);
    if (!data) return {};
    return {big_endian(find_netlink_attribute(*data, NFTA_COUNTER_PACKETS)),
            big_endian(find_netlink_attribute(*data, NFTA_COUNTER_BYTES))};
}

Result<CounterValue> read_counter(NetlinkSocket& socket, Family family, std::string_view table,
                                  std::string_view counter) {
    NetlinkMessage request(message_type(NFT_MSG_GETOBJ), 0);
    request.header<nfgenmsg>().nfgen_family = static_cast<std::uint8_t>(family);
    request.put_text(NFTA_OBJ_TABLE, table)
        .put_text(NFTA_OBJ_NAME, counter)
        .put_u32(NFTA_OBJ_TYPE, htonl(NFT_OBJECT_COUNTER));
    auto answer = socket.exchange(request, "read counter " + quoted(counter));
    if (!answer) return answer.error();
    return parse_counter(*answer);
}

}  // namespace opensandbox::net::nft
