#include "net/nftables.hpp"

#include <libmnl/libmnl.h>
#include <libnftnl/common.h>
#include <libnftnl/set.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include <algorithm>
#include <array>
#include <new>

// Sets of any shape: made, changed and listed.
namespace opensandbox::net::nft {

namespace {

/// So that a message stays well within its room, whatever the elements carry: less than 700 bytes
/// each.
constexpr std::size_t kElementsOfAMessage = 32;
constexpr std::size_t kLongestComment = 128;
constexpr std::uint8_t kCommentOfElement = 0;        // NFTNL_UDATA_SET_ELEM_COMMENT
constexpr std::uint32_t kVerdictType = 0xffffff00U;  // NFT_DATA_VERDICT

struct FreeSet {
    void operator()(nftnl_set* set) const { nftnl_set_free(set); }
};
using ElementSet = std::unique_ptr<nftnl_set, FreeSet>;

ElementSet make_set(Family family, std::string_view table, const SetReference& reference) {
    ElementSet set(nftnl_set_alloc());
    if (!set) throw std::bad_alloc();
    nftnl_set_set_u32(set.get(), NFTNL_SET_FAMILY, static_cast<std::uint32_t>(family));
    nftnl_set_set_str(set.get(), NFTNL_SET_TABLE, std::string(table).c_str());
    nftnl_set_set_str(set.get(), NFTNL_SET_NAME, reference.name.c_str());
    if (reference.id != 0) nftnl_set_set_u32(set.get(), NFTNL_SET_ID, reference.id);
    return set;
}

std::uint32_t flags_of(const SetLayout& layout) {
    std::uint32_t flags = 0;
    if (layout.value != SetValue::none) flags |= NFT_SET_MAP;
    if (layout.timeouts) flags |= NFT_SET_TIMEOUT;
    if (layout.intervals) flags |= NFT_SET_INTERVAL;
    if (layout.dynamic) flags |= NFT_SET_EVAL;
    return flags;
}

void describe(nftnl_set* set, const SetLayout& layout, std::uint32_t flags) {
    nftnl_set_set_u32(set, NFTNL_SET_FLAGS, flags);
    nftnl_set_set_u32(set, NFTNL_SET_KEY_TYPE, layout.key_type());
    nftnl_set_set_u32(set, NFTNL_SET_KEY_LEN, static_cast<std::uint32_t>(layout.key_size()));
    if (layout.value == SetValue::verdict) {
        nftnl_set_set_u32(set, NFTNL_SET_DATA_TYPE, kVerdictType);
        nftnl_set_set_u32(set, NFTNL_SET_DATA_LEN, 16);
    }
    // Or the tools would list links' names back to front.
    constexpr std::array<std::uint8_t, 6> kEyInHostOrder{0, 4, 1, 0, 0, 0};
    if (layout.key.size() == 1 && layout.key.front() == KeyField::link_name)
        nftnl_set_set_data(set, NFTNL_SET_USERDATA, kEyInHostOrder.data(), kEyInHostOrder.size());
    if (layout.size != 0) nftnl_set_set_u32(set, NFTNL_SET_DESC_SIZE, layout.size);
    if (layout.lifetime.count() > 0)
        nftnl_set_set_u64(set, NFTNL_SET_TIMEOUT,
                          static_cast<std::uint64_t>(layout.lifetime.count()));
}

nftnl_set_elem* make_element(std::span<const std::uint8_t> key) {
    auto* item = nftnl_set_elem_alloc();
    if (item == nullptr) throw std::bad_alloc();
    nftnl_set_elem_set(item, NFTNL_SET_ELEM_KEY, key.data(),
                       static_cast<std::uint32_t>(key.size()));
    return item;
}

/// The key after this one, where a range ends; empty when it was the very last.
std::vector<std::uint8_t> following(std::span<const std::uint8_t> key) {
    std::vector<std::uint8_t> next(key.begin(), key.end());
    for (auto byte = next.rbegin(); byte != next.rend(); ++byte)
        if (++*byte != 0) return next;
    return {};
}

void put_details(nftnl_set_elem* item, const Element& element) {
    if (!element.chain.empty()) {
        nftnl_set_elem_set_u32(item, NFTNL_SET_ELEM_VERDICT, static_cast<std::uint32_t>(NFT_JUMP));
        nftnl_set_elem_set_str(item, NFTNL_SET_ELEM_CHAIN, element.chain.c_str());
    }
    if (element.lifetime.count() > 0) {
        // Both: an equal timeout alone would not begin anew.
        const auto lifetime = static_cast<std::uint64_t>(element.lifetime.count());
        nftnl_set_elem_set_u64(item, NFTNL_SET_ELEM_TIMEOUT, lifetime);
        nftnl_set_elem_set_u64(item, NFTNL_SET_ELEM_EXPIRATION, lifetime);
    }
    if (!element.comment.empty() && element.comment.size() <= kLongestComment) {
        std::string data{static_cast<char>(kCommentOfElement),
                         static_cast<char>(element.comment.size() + 1)};
        data += element.comment;
        data += '\0';
        nftnl_set_elem_set(item, NFTNL_SET_ELEM_USERDATA, data.data(),
                           static_cast<std::uint32_t>(data.size()));
    }
}

/// The set owns what is added to it.
void put_element(nftnl_set* set, const SetLayout& layout, const Element& element) {
    const std::size_t size = std::min(layout.key_size(), element.key.bytes().size());
    auto* item = make_element(element.key.bytes().first(size));
    put_details(item, element);
    nftnl_set_elem_add(set, item);
    if (!layout.intervals) return;
    const auto last = element.last ? element.last->bytes() : element.key.bytes();
    const auto end = following(last.first(std::min(size, last.size())));
    if (end.empty()) return;
    auto* mark = make_element(end);
    nftnl_set_elem_set_u32(mark, NFTNL_SET_ELEM_FLAGS, NFT_SET_ELEM_INTERVAL_END);
    nftnl_set_elem_add(set, mark);
}

template <class Each>
void each_attribute(NetlinkBytes attributes, const Each& each) {
    while (attributes.size() >= MNL_ATTR_HDRLEN) {
        nlattr head{};
        std::memcpy(&head, attributes.data(), sizeof(head));
        if (head.nla_len < MNL_ATTR_HDRLEN || head.nla_len > attributes.size()) return;
        each(static_cast<std::uint16_t>(head.nla_type & NLA_TYPE_MASK),
             attributes.subspan(MNL_ATTR_HDRLEN, head.nla_len - MNL_ATTR_HDRLEN));
        attributes =
            attributes.subspan(std::min<std::size_t>(MNL_ALIGN(head.nla_len), attributes.size()));
    }
}

std::string comment_in(NetlinkBytes data) {
    while (data.size() >= 2) {
        const std::size_t size = data[1];
        if (data.size() < 2 + size) return {};
        if (data[0] == kCommentOfElement) return netlink_text(data.subspan(2, size), size);
        data = data.subspan(2 + size);
    }
    return {};
}

std::optional<ListedElement> parse_element(NetlinkBytes attributes) {
    const auto key = find_netlink_attribute(attributes, NFTA_SET_ELEM_KEY);
    if (!key) return std::nullopt;
    const auto bytes = find_netlink_attribute(*key, NFTA_DATA_VALUE);
    if (!bytes) return std::nullopt;
    ListedElement element;
    element.key.assign(bytes->begin(), bytes->end());
    if (const auto left = find_netlink_attribute(attributes, NFTA_SET_ELEM_EXPIRATION)) {
        std::uint64_t value = 0;
        for (const auto byte : *left)
            value = value << 8 | byte;
        element.remaining = std::chrono::milliseconds(static_cast<std::int64_t>(value));
    }
    if (const auto data = find_netlink_attribute(attributes, NFTA_SET_ELEM_DATA)) {
        const auto verdict = find_netlink_attribute(*data, NFTA_DATA_VERDICT);
        const auto chain =
            verdict ? find_netlink_attribute(*verdict, NFTA_VERDICT_CHAIN) : std::nullopt;
        if (chain) element.chain = netlink_text(*chain, NFT_NAME_MAXLEN);
    }
    if (const auto data = find_netlink_attribute(attributes, NFTA_SET_ELEM_USERDATA))
        element.comment = comment_in(*data);
    return element;
}

constexpr std::uint16_t element_message_type(std::uint16_t type) {
    return static_cast<std::uint16_t>(NFNL_SUBSYS_NFTABLES << 8 | type);
}

NetlinkBytes attributes_of(NetlinkBytes message) {
    const std::size_t begin = MNL_NLMSG_HDRLEN + MNL_ALIGN(sizeof(nfgenmsg));
    return message.size() < begin ? NetlinkBytes() : message.subspan(begin);
}

}  // namespace

void Transaction::add_set(Family family, std::string_view table, std::string_view name,
                          const SetLayout& layout) {
    check_name(table);
    check_name(name);
    append("add set \"" + std::string(name) + '"', NFT_MSG_NEWSET, family, NLM_F_CREATE,
           [&](nlmsghdr* m) {
               const auto set = make_set(family, table, {std::string(name), ++sets_});
               describe(set.get(), layout, flags_of(layout));
               nftnl_set_nlmsg_build_payload(m, set.get());
           });
}

SetReference Transaction::add_constant_set(Family family, std::string_view table,
                                           const SetLayout& layout,
                                           std::span<const Element> elements) {
    check_name(table);
    SetReference reference("__set%d", ++sets_);
    append("add constant set " + std::to_string(reference.id), NFT_MSG_NEWSET, family, NLM_F_CREATE,
           [&](nlmsghdr* m) {
               const auto set = make_set(family, table, reference);
               describe(set.get(), layout, flags_of(layout) | NFT_SET_ANONYMOUS | NFT_SET_CONSTANT);
               nftnl_set_nlmsg_build_payload(m, set.get());
           });
    add_elements(family, table, reference, layout, elements);
    return reference;
}

void Transaction::change_elements(std::uint16_t type, std::string_view verb, Family family,
                                  std::string_view table, const SetReference& reference,
                                  const SetLayout& layout, std::span<const Element> elements) {
    check_name(table);
    check_name(reference.name);
    const auto valid = [&](const Element& element) {
        return element.key.valid() && element.key.bytes().size() >= layout.key_size() &&
               element.chain.size() < NFT_NAME_MAXLEN;
    };
    if (!std::ranges::all_of(elements, valid))
        failed_ = Error(ErrorCode::invalid_argument, "nftables element of set \"" + reference.name +
                                                         "\": the key does not fit the set");
    while (!elements.empty()) {
        const auto part = elements.first(std::min(elements.size(), kElementsOfAMessage));
        elements = elements.subspan(part.size());
        append(std::string(verb) + " elements of set \"" + reference.name + '"', type, family,
               type == NFT_MSG_NEWSETELEM ? NLM_F_CREATE : std::uint16_t{0}, [&](nlmsghdr* m) {
                   const auto set = make_set(family, table, reference);
                   for (const auto& element : part)
                       put_element(set.get(), layout, element);
                   nftnl_set_elems_nlmsg_build_payload(m, set.get());
               });
    }
}

void Transaction::add_elements(Family family, std::string_view table, const SetReference& set,
                               const SetLayout& layout, std::span<const Element> elements) {
    change_elements(NFT_MSG_NEWSETELEM, "add", family, table, set, layout, elements);
}

void Transaction::remove_elements(Family family, std::string_view table, std::string_view set,
                                  const SetLayout& layout, std::span<const Element> elements) {
    // To delete what is not there is refused, and what is there has perhaps just expired: adding
    // first is right in both cases, in every kernel, and never fails.
    change_elements(NFT_MSG_NEWSETELEM, "prepare", family, table, set, layout, elements);
    change_elements(NFT_MSG_DELSETELEM, "delete", family, table, set, layout, elements);
}

void Transaction::put_elements(Family family, std::string_view table, std::string_view set,
                               const SetLayout& layout, std::span<const Element> elements) {
    remove_elements(family, table, set, layout, elements);
    change_elements(NFT_MSG_NEWSETELEM, "put", family, table, set, layout, elements);
}

Result<std::vector<std::string>> list_chains(NetlinkSocket& socket, Family family,
                                             std::string_view table) {
    NetlinkMessage request(element_message_type(NFT_MSG_GETCHAIN), NLM_F_DUMP);
    request.header<nfgenmsg>().nfgen_family = static_cast<std::uint8_t>(family);
    auto answer = socket.exchange(request, "list nftables chains");
    if (!answer) return answer.error();
    std::vector<std::string> names;
    split_netlink_datagram(*answer, [&](NetlinkBytes message) {
        const auto attributes = attributes_of(message);
        const auto of = find_netlink_attribute(attributes, NFTA_CHAIN_TABLE);
        const auto name = find_netlink_attribute(attributes, NFTA_CHAIN_NAME);
        if (of && name && netlink_text(*of, NFT_NAME_MAXLEN) == table)
            names.push_back(netlink_text(*name, NFT_NAME_MAXLEN));
        return true;
    });
    return names;
}

std::vector<ListedElement> parse_elements(NetlinkBytes message) {
    std::vector<ListedElement> elements;
    const auto list = find_netlink_attribute(attributes_of(message), NFTA_SET_ELEM_LIST_ELEMENTS);
    if (!list) return elements;
    each_attribute(*list, [&](std::uint16_t type, NetlinkBytes attributes) {
        if (type != NFTA_LIST_ELEM) return;
        if (auto element = parse_element(attributes)) elements.push_back(std::move(*element));
    });
    return elements;
}

Result<std::vector<ListedElement>> list_elements(NetlinkSocket& socket, Family family,
                                                 std::string_view table, std::string_view set) {
    NetlinkMessage request(element_message_type(NFT_MSG_GETSETELEM), NLM_F_DUMP);
    request.header<nfgenmsg>().nfgen_family = static_cast<std::uint8_t>(family);
    request.put_text(NFTA_SET_ELEM_LIST_TABLE, table).put_text(NFTA_SET_ELEM_LIST_SET, set);
    auto answer = socket.exchange(request, "list nftables set \"" + std::string(set) + '"');
    if (!answer) return answer.error();
    std::vector<ListedElement> elements;
    split_netlink_datagram(*answer, [&](NetlinkBytes message) {
        std::ranges::move(parse_elements(message), std::back_inserter(elements));
        return true;
    });
    return elements;
}

}  // namespace opensandbox::net::nft
