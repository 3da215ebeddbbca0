#include "runtime/native/inside/gvisor_link.hpp"

#include "base/unique_fd.hpp"
#include "net/ipv4_range.hpp"
#include "net/route_socket.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/inside/gvisor_bundle.hpp"
#include "runtime/native/network/link_addresses.hpp"

#include <sys/mount.h>

#include <fcntl.h>
#include <sched.h>

namespace opensandbox::runtime::native {

namespace {

constexpr const char* kInnerLink = "agent0";
constexpr unsigned kPrefix = 30;

Result<UniqueFd> keep_namespace() {
    const UniqueFd place(::open(kGvisorNetworkPath, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    if (!place) return last_error(std::string("create ") + kGvisorNetworkPath);
    constexpr const char* kOwn = "/proc/self/ns/net";
    if (::mount(kOwn, kGvisorNetworkPath, nullptr, MS_BIND, nullptr) < 0) {
        return last_error("keep the network namespace");
    }
    UniqueFd fd(::open(kOwn, O_RDONLY | O_CLOEXEC));
    if (!fd) return last_error("open the network namespace");
    return fd;
}

}  // namespace

Status leave_network() {
    auto inside = net::RouteSocket::open();
    if (!inside) return inside.error();
    auto theirs = keep_namespace();
    if (!theirs) return theirs.error();
    if (auto s = check(::unshare(CLONE_NEWNET), "unshare network"); !s) return s;
    auto outside = net::RouteSocket::open();
    if (!outside) return outside.error();
    const auto near = boost::asio::ip::make_address_v4("169.254.77.1");
    const auto far = boost::asio::ip::make_address_v4(kGvisorAgentAddress);
    auto link = outside->create_veth(
        {.host_name = "sandbox",
         .host_mac = kHostMac,
         .peer_name = kInnerLink,
         .peer_mac = kSlotMac,
         .peer_namespace = net::NetworkNamespace::of_descriptor(theirs->get())});
    if (!link) return link.error();
    if (auto s = outside->add_address(*link, near, kPrefix); !s) return s;
    if (auto s = outside->add_neighbour(*link, far, kSlotMac); !s) return s;
    auto inner = inside->link_index(kInnerLink);
    if (!inner) return inner.error();
    if (auto s = inside->set_up(*inner); !s) return s;
    if (auto s = inside->add_address(*inner, far, kPrefix); !s) return s;
    return inside->add_neighbour(*inner, near, kHostMac);
}

}  // namespace opensandbox::runtime::native
