#include "net/netlink_socket.hpp"
#include "net/nftables.hpp"
#include "runtime/native/network/pasta.hpp"
#include "runtime/native/network/uplink.hpp"

#include <linux/netlink.h>
#include <netinet/in.h>

#include <array>
#include <vector>

namespace opensandbox::runtime::native {

namespace {

using net::nft::Family;
using net::nft::Hook;
using net::nft::Rule;
using net::nft::SetLayout;
using Source = net::nft::KeyPart::Source;

constexpr const char* kUplinkRefuseChain = "refuse";
constexpr const char* kUplinkChain = "to_uplink";
constexpr const char* kSet4 = "host4";
constexpr const char* kSet6 = "host6";
/// Before the rules about sandboxes, which may accept.
constexpr std::int32_t kBeforeSandboxes = -6;

struct AddressBlock {
    const char* network;
    unsigned prefix;
};
constexpr std::array kRefused4{AddressBlock{"0.0.0.0", 8}, AddressBlock{"127.0.0.0", 8},
                               AddressBlock{"169.254.0.0", 16}};
/// ::/96 has ::1 and addresses that embed IPv4 ones; sockets take ::ffff:0:0/96 for IPv4.
constexpr std::array kRefused6{AddressBlock{"::", 96}, AddressBlock{"::ffff:0:0", 96},
                               AddressBlock{"fe80::", 10}};

void add_addresses(net::nft::Transaction& transaction, const std::string& table,
                   const std::set<boost::asio::ip::address>& host) {
    std::vector<net::nft::Element> four, six;
    for (const auto& address : host)
        (address.is_v4() ? four : six).emplace_back(net::nft::SetKey().address(address));
    const SetLayout layout4({net::nft::KeyField::ipv4});
    const SetLayout layout6({net::nft::KeyField::ipv6});
    transaction.add_set(Family::inet, table, kSet4, layout4);
    transaction.add_set(Family::inet, table, kSet6, layout6);
    if (!four.empty()) transaction.add_elements(Family::inet, table, kSet4, layout4, four);
    if (!six.empty()) transaction.add_elements(Family::inet, table, kSet6, layout6, six);
}

}  // namespace

Status install_uplink_firewall(const std::string& table,
                               const std::set<boost::asio::ip::address>& host) {
    auto socket = net::NetlinkSocket::open(NETLINK_NETFILTER);
    if (!socket) return socket.error();
    net::nft::Transaction transaction;
    // Adding first lets the deletion succeed whether or not there was one.
    transaction.add_table(Family::inet, table);
    transaction.delete_table(Family::inet, table);
    transaction.add_table(Family::inet, table);
    add_addresses(transaction, table, host);
    const auto rule = [&](const char* chain, const Rule& made) {
        transaction.add_rule(Family::inet, table, chain, made);
    };
    transaction.add_chain(Family::inet, table, kUplinkRefuseChain);
    rule(kUplinkRefuseChain, Rule().transport(IPPROTO_TCP).reject_with_reset());
    rule(kUplinkRefuseChain, Rule().reject_as_prohibited());
    transaction.add_chain(Family::inet, table, kUplinkChain);
    rule(kUplinkChain,
         Rule().is_ipv4().in_set(Source::ipv4_destination, kSet4).go_to(kUplinkRefuseChain));
    rule(kUplinkChain,
         Rule().is_ipv6().in_set(Source::ipv6_destination, kSet6).go_to(kUplinkRefuseChain));
    for (const AddressBlock& block : kRefused4) {
        const auto network = boost::asio::ip::make_address_v4(block.network);
        rule(kUplinkChain,
             Rule().is_ipv4().destination(network, block.prefix).go_to(kUplinkRefuseChain));
    }
    for (const AddressBlock& block : kRefused6) {
        const auto network = boost::asio::ip::make_address_v6(block.network);
        rule(kUplinkChain,
             Rule().is_ipv6().destination(network, block.prefix).go_to(kUplinkRefuseChain));
    }
    using namespace std::string_literals;
    const std::string whole_name = kUplinkName + "\0"s;
    for (const auto& [chain, hook] :
         {std::pair{"forward", Hook::forward}, std::pair{"output", Hook::output}}) {
        transaction.add_base_chain(Family::inet, table, chain, "filter", hook, kBeforeSandboxes);
        rule(chain, Rule().to_interfaces(whole_name).go_to(kUplinkChain));
    }
    // pasta tells of room in its window by segments without any flag while the peer has not
    // acknowledged what it was sent. Connection tracking calls them invalid and does not translate
    // them back, so this namespace's own stack would get them, and its reset would end the
    // connection at pasta.
    transaction.add_base_chain(Family::inet, table, "input", "filter", Hook::input,
                               kBeforeSandboxes);
    rule("input", Rule().from_interfaces(whole_name).connection(net::nft::invalid).drop());
    auto committed = transaction.commit(*socket);
    if (!committed) return committed.error().within("install firewall \"" + table + "\"");
    return {};
}

}  // namespace opensandbox::runtime::native
