#include "net/netlink_message.hpp"

#include <libmnl/libmnl.h>
#include <linux/netlink.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace opensandbox::net {

namespace {

constexpr std::size_t kExplanationLimit = 512;
constexpr int kMaxErrno = 4095;

template <class T>
T read(NetlinkBytes bytes) {
    T value{};
    std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof(T)));
    return value;
}

/// The kernel's sentence of an extended acknowledgement, whose attributes begin at `offset`.
std::string explanation(NetlinkBytes message, std::size_t offset) {
    offset = MNL_ALIGN(offset);
    if (offset >= message.size()) return {};
    const auto text = find_netlink_attribute(message.subspan(offset), NLMSGERR_ATTR_MSG);
    return text ? netlink_text(*text, kExplanationLimit) : std::string();
}

NetlinkVerdict parse_done(const nlmsghdr& head, NetlinkBytes message) {
    NetlinkVerdict verdict{head.nlmsg_seq, 0, {}};
    const auto payload = message.subspan(MNL_NLMSG_HDRLEN);
    if (payload.size() < sizeof(int)) return verdict;
    const auto status = read<int>(payload);
    if (status < 0 && status >= -kMaxErrno) verdict.error = -status;
    if (verdict.error != 0 && (head.nlmsg_flags & NLM_F_ACK_TLVS) != 0)
        verdict.explanation = explanation(message, MNL_NLMSG_HDRLEN + sizeof(int));
    return verdict;
}

}  // namespace

NetlinkMessage::NetlinkMessage(std::uint16_t type, std::uint16_t flags) {
    nlmsghdr* head = mnl_nlmsg_put_header(buffer_.data());
    head->nlmsg_type = type;
    head->nlmsg_flags = flags;
}

nlmsghdr& NetlinkMessage::head() {
    return *reinterpret_cast<nlmsghdr*>(buffer_.data());
}

NetlinkBytes NetlinkMessage::bytes() const {
    return NetlinkBytes(buffer_).first(
        reinterpret_cast<const nlmsghdr*>(buffer_.data())->nlmsg_len);
}

void* NetlinkMessage::extra(std::size_t size) {
    if (MNL_ALIGN(bytes().size()) + MNL_ALIGN(size) > kCapacity) {
        // The caller still needs something to write to: the start of a message never sent.
        valid_ = false;
        return buffer_.data();
    }
    return mnl_nlmsg_put_extra_header(&head(), size);
}

NetlinkMessage& NetlinkMessage::put(std::uint16_t type, NetlinkBytes bytes) {
    valid_ = valid_ && mnl_attr_put_check(&head(), kCapacity, type, bytes.size(), bytes.data());
    return *this;
}

NetlinkMessage& NetlinkMessage::put_u32(std::uint16_t type, std::uint32_t value) {
    return put(type, {reinterpret_cast<const std::uint8_t*>(&value), sizeof(value)});
}

NetlinkMessage& NetlinkMessage::put_text(std::uint16_t type, std::string_view text) {
    const std::string terminated(text);
    return put(type,
               {reinterpret_cast<const std::uint8_t*>(terminated.c_str()), terminated.size() + 1});
}

std::size_t NetlinkMessage::begin(std::uint16_t type) {
    const auto place = bytes().size();
    valid_ = valid_ && mnl_attr_nest_start_check(&head(), kCapacity, type) != nullptr;
    return place;
}

NetlinkMessage& NetlinkMessage::end(std::size_t place) {
    if (valid_)
        mnl_attr_nest_end(&head(), reinterpret_cast<nlattr*>(buffer_.data() + MNL_ALIGN(place)));
    return *this;
}

std::optional<NetlinkVerdict> parse_netlink_verdict(NetlinkBytes message) {
    if (message.size() < MNL_NLMSG_HDRLEN) return std::nullopt;
    const auto head = read<nlmsghdr>(message);
    if (head.nlmsg_type == NLMSG_DONE) return parse_done(head, message);
    if (head.nlmsg_type != NLMSG_ERROR) return std::nullopt;

    const auto payload = message.subspan(MNL_NLMSG_HDRLEN);
    if (payload.size() < sizeof(nlmsgerr)) return std::nullopt;
    const auto reply = read<nlmsgerr>(payload);
    if (reply.error > 0 || reply.error < -kMaxErrno) return std::nullopt;

    NetlinkVerdict verdict{head.nlmsg_seq, -reply.error, {}};
    if ((head.nlmsg_flags & NLM_F_ACK_TLVS) != 0) {
        // The refused message is quoted whole unless the flag says that its header is all.
        const bool capped = (head.nlmsg_flags & NLM_F_CAPPED) != 0;
        const std::size_t quoted = capped ? sizeof(nlmsghdr) : reply.msg.nlmsg_len;
        verdict.explanation =
            explanation(message, MNL_NLMSG_HDRLEN + offsetof(nlmsgerr, msg) + MNL_ALIGN(quoted));
    }
    return verdict;
}

bool split_netlink_datagram(NetlinkBytes datagram, const std::function<bool(NetlinkBytes)>& each) {
    while (!datagram.empty()) {
        if (datagram.size() < MNL_NLMSG_HDRLEN) return false;
        const std::size_t length = read<nlmsghdr>(datagram).nlmsg_len;
        if (length < MNL_NLMSG_HDRLEN || length > datagram.size()) return false;
        if (!each(datagram.first(length))) return true;
        // Only the last message may lack its padding.
        datagram = datagram.subspan(std::min<std::size_t>(MNL_ALIGN(length), datagram.size()));
    }
    return true;
}

std::optional<NetlinkBytes> find_netlink_attribute(NetlinkBytes attributes, std::uint16_t type) {
    while (attributes.size() >= MNL_ATTR_HDRLEN) {
        const auto head = read<nlattr>(attributes);
        if (head.nla_len < MNL_ATTR_HDRLEN || head.nla_len > attributes.size()) break;
        if ((head.nla_type & NLA_TYPE_MASK) == type)
            return attributes.subspan(MNL_ATTR_HDRLEN, head.nla_len - MNL_ATTR_HDRLEN);
        attributes =
            attributes.subspan(std::min<std::size_t>(MNL_ALIGN(head.nla_len), attributes.size()));
    }
    return std::nullopt;
}

std::string netlink_text(NetlinkBytes payload, std::size_t limit) {
    payload = payload.first(std::min(payload.size(), limit));
    return {payload.begin(), std::find(payload.begin(), payload.end(), std::uint8_t{0})};
}

}  // namespace opensandbox::net
