#include "net/netlink_message.hpp"

#include "net/netlink_socket.hpp"
#include "net/nftables.hpp"
#include "net/route_socket.hpp"

#include <catch2/catch.hpp>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include <cerrno>
#include <cstring>
#include <vector>

using namespace opensandbox;
using namespace opensandbox::net;

namespace {

using Bytes = std::vector<std::uint8_t>;

/// A message of this type, with a body, and with a length that may be a lie.
Bytes message(std::uint16_t type, std::uint16_t flags, const Bytes& body, int lie = 0) {
    nlmsghdr head{};
    head.nlmsg_len = static_cast<std::uint32_t>(static_cast<int>(sizeof(head) + body.size()) + lie);
    head.nlmsg_type = type;
    head.nlmsg_flags = flags;
    head.nlmsg_seq = 7;
    Bytes bytes(sizeof(head));
    std::memcpy(bytes.data(), &head, sizeof(head));
    bytes.insert(bytes.end(), body.begin(), body.end());
    return bytes;
}

/// The body of an NLMSG_ERROR: the errno, the header of what was refused, attributes.
Bytes refusal(int number, const Bytes& attributes = {}, std::uint32_t quoted = 0) {
    nlmsgerr reply{};
    reply.error = -number;
    reply.msg.nlmsg_len = static_cast<std::uint32_t>(sizeof(nlmsghdr)) + quoted;
    Bytes body(sizeof(reply) + quoted);
    std::memcpy(body.data(), &reply, sizeof(reply));
    body.insert(body.end(), attributes.begin(), attributes.end());
    return body;
}

Bytes attribute(std::uint16_t type, std::string_view text, int lie = 0) {
    nlattr head{};
    head.nla_len = static_cast<std::uint16_t>(static_cast<int>(sizeof(head) + text.size()) + lie);
    head.nla_type = type;
    Bytes bytes(sizeof(head));
    std::memcpy(bytes.data(), &head, sizeof(head));
    bytes.insert(bytes.end(), text.begin(), text.end());
    bytes.resize(NLMSG_ALIGN(bytes.size()));
    return bytes;
}

constexpr std::uint16_t kCapped = NLM_F_CAPPED | NLM_F_ACK_TLVS;

}  // namespace

TEST_CASE("an acknowledgement is a verdict without error") {
    const auto verdict = parse_netlink_verdict(message(NLMSG_ERROR, 0, refusal(0)));
    REQUIRE(verdict);
    CHECK(verdict->error == 0);
    CHECK(verdict->sequence == 7);
}

TEST_CASE("a refusal carries the errno and the kernel's explanation") {
    const auto explained = attribute(NLMSGERR_ATTR_MSG, std::string_view("Nope\0", 5));
    SECTION("behind the header of the refused message") {
        const auto verdict =
            parse_netlink_verdict(message(NLMSG_ERROR, kCapped, refusal(EEXIST, explained)));
        REQUIRE(verdict);
        CHECK(verdict->error == EEXIST);
        CHECK(verdict->explanation == "Nope");
    }
    SECTION("behind the whole refused message") {
        const auto verdict = parse_netlink_verdict(
            message(NLMSG_ERROR, NLM_F_ACK_TLVS, refusal(EINVAL, explained, 20)));
        REQUIRE(verdict);
        CHECK(verdict->explanation == "Nope");
    }
    SECTION("after another attribute") {
        auto attributes = attribute(NLMSGERR_ATTR_OFFS, "abcd");
        attributes.insert(attributes.end(), explained.begin(), explained.end());
        const auto verdict =
            parse_netlink_verdict(message(NLMSG_ERROR, kCapped, refusal(EINVAL, attributes)));
        REQUIRE(verdict);
        CHECK(verdict->explanation == "Nope");
    }
    SECTION("unless it says that there is none") {
        const auto verdict =
            parse_netlink_verdict(message(NLMSG_ERROR, 0, refusal(EINVAL, explained)));
        REQUIRE(verdict);
        CHECK(verdict->explanation.empty());
    }
}

TEST_CASE("a refusal whose lengths lie is read without its explanation") {
    const auto explained = attribute(NLMSGERR_ATTR_MSG, "Nope");
    SECTION("the quoted message claims more than there is") {
        auto body = refusal(EINVAL, explained);
        const std::uint32_t huge = 0xfffffff0;
        std::memcpy(body.data() + offsetof(nlmsgerr, msg), &huge, sizeof(huge));
        const auto verdict = parse_netlink_verdict(message(NLMSG_ERROR, NLM_F_ACK_TLVS, body));
        REQUIRE(verdict);
        CHECK(verdict->explanation.empty());
    }
    SECTION("the attribute claims more than there is") {
        const auto lying = attribute(NLMSGERR_ATTR_MSG, "Nope", 1);
        const auto verdict =
            parse_netlink_verdict(message(NLMSG_ERROR, kCapped, refusal(EINVAL, lying)));
        REQUIRE(verdict);
        CHECK(verdict->explanation.empty());
    }
}

TEST_CASE("the end of a dump carries its own verdict") {
    CHECK(parse_netlink_verdict(message(NLMSG_DONE, 0, {}))->error == 0);
    CHECK(parse_netlink_verdict(message(NLMSG_DONE, 0, {0, 0, 0, 0}))->error == 0);
    CHECK(parse_netlink_verdict(message(NLMSG_DONE, 0, {0xff, 0xff, 0xff, 0xff}))->error == EPERM);
    CHECK(parse_netlink_verdict(message(NLMSG_DONE, 0, {0, 0, 0, 0x80}))->error == 0);
}

TEST_CASE("what is no verdict is not taken for one") {
    CHECK_FALSE(parse_netlink_verdict({}));
    CHECK_FALSE(parse_netlink_verdict(message(RTM_NEWLINK, 0, refusal(0))));
    CHECK_FALSE(parse_netlink_verdict(message(NLMSG_ERROR, 0, {0, 0, 0, 0})));
    CHECK_FALSE(parse_netlink_verdict(message(NLMSG_ERROR, 0, refusal(-EPERM))));
}

TEST_CASE("a datagram is split into its whole messages") {
    auto bytes = message(RTM_NEWLINK, 0, {1, 2, 3, 4});
    const auto second = message(RTM_NEWLINK, 0, {5, 6});
    bytes.insert(bytes.end(), second.begin(), second.end());
    std::vector<std::size_t> sizes;
    const auto remember = [&](NetlinkBytes part) {
        sizes.push_back(part.size());
        return true;
    };
    SECTION("the last may lack its padding") {
        CHECK(split_netlink_datagram(bytes, remember));
        CHECK(sizes == std::vector<std::size_t>{20, 18});
    }
    SECTION("it stops when told to") {
        CHECK(split_netlink_datagram(bytes, [](NetlinkBytes) { return false; }));
    }
    SECTION("a message cut short is an error") {
        bytes.pop_back();
        CHECK_FALSE(split_netlink_datagram(bytes, remember));
        CHECK(sizes == std::vector<std::size_t>{20});
    }
    SECTION("a length below the header's is an error, not an endless loop") {
        const auto tiny = message(RTM_NEWLINK, 0, {}, -1);
        CHECK_FALSE(split_netlink_datagram(tiny, remember));
        CHECK_FALSE(split_netlink_datagram(message(RTM_NEWLINK, 0, {}, -16), remember));
    }
    SECTION("bytes too few for a header are an error") {
        CHECK_FALSE(split_netlink_datagram(Bytes{1, 2, 3}, remember));
    }
}

TEST_CASE("a link is read from its message, or not at all") {
    ifinfomsg info{};
    info.ifi_index = 5;
    const auto body = [&](const Bytes& attributes) {
        Bytes bytes(sizeof(info));
        std::memcpy(bytes.data(), &info, sizeof(info));
        bytes.insert(bytes.end(), attributes.begin(), attributes.end());
        return bytes;
    };
    const auto name = attribute(IFLA_IFNAME, std::string_view("osb1\0", 5));
    SECTION("whole") {
        const auto link = parse_link(message(RTM_NEWLINK, 0, body(name)));
        REQUIRE(link);
        CHECK(link->index == 5);
        CHECK(link->name == "osb1");
    }
    SECTION("a name without its end is cut at the attribute's") {
        const auto link = parse_link(message(RTM_NEWLINK, 0, body(attribute(IFLA_IFNAME, "abcd"))));
        REQUIRE(link);
        CHECK(link->name == "abcd");
    }
    SECTION("of another type, without index, without name, cut short") {
        CHECK_FALSE(parse_link(message(RTM_DELLINK, 0, body(name))));
        CHECK_FALSE(parse_link(message(RTM_NEWLINK, 0, body({}))));
        CHECK_FALSE(parse_link(message(RTM_NEWLINK, 0, {1, 2, 3})));
        info.ifi_index = 0;
        CHECK_FALSE(parse_link(message(RTM_NEWLINK, 0, body(name))));
    }
}

TEST_CASE("a message that outgrows its buffer is invalid and stays inside it") {
    NetlinkMessage small(RTM_NEWLINK, 0);
    small.header<ifinfomsg>();
    small.put_text(IFLA_IFNAME, "osb1");
    CHECK(small.valid());
    CHECK(small.bytes().size() == sizeof(nlmsghdr) + sizeof(ifinfomsg) + 12);

    NetlinkMessage large(RTM_NEWLINK, 0);
    const auto nest = large.begin(IFLA_LINKINFO);
    large.put_text(IFLA_IFNAME, std::string(NetlinkMessage::kCapacity, 'x')).end(nest);
    CHECK_FALSE(large.valid());
    large.put_u32(IFLA_MTU, 1);
    large.header<ifinfomsg>().ifi_index = 1;
    CHECK_FALSE(large.valid());
    CHECK(large.bytes().size() <= NetlinkMessage::kCapacity);
}

TEST_CASE("a nested attribute spans what was put between its begin and end") {
    NetlinkMessage message(RTM_NEWLINK, 0);
    message.header<ifinfomsg>();
    const auto outer = message.begin(IFLA_LINKINFO);
    message.put_text(IFLA_INFO_KIND, "veth").end(outer).put_u32(IFLA_MTU, 1400);
    const auto attributes = message.bytes().subspan(sizeof(nlmsghdr) + sizeof(ifinfomsg));
    const auto info = find_netlink_attribute(attributes, IFLA_LINKINFO);
    REQUIRE(info);
    const auto kind = find_netlink_attribute(*info, IFLA_INFO_KIND);
    REQUIRE(kind);
    CHECK(netlink_text(*kind, 16) == "veth");
    CHECK_FALSE(find_netlink_attribute(*info, IFLA_MTU));
    CHECK(find_netlink_attribute(attributes, IFLA_MTU)->size() == 4);
    CHECK_FALSE(find_netlink_attribute(attributes, IFLA_ADDRESS));
}

TEST_CASE("a netlink error names operation, explanation and errno") {
    const auto error = netlink_error({1, EEXIST, "Already there"}, "create link a");
    CHECK(error.code() == ErrorCode::conflict);
    CHECK(error.message() == "create link a: Already there: File exists");
    CHECK(netlink_error({1, ENODEV, ""}, "find").code() == ErrorCode::not_found);
}
