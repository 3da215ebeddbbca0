#include "runtime/native/ground/confinement/seccomp_filter.hpp"

#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <sched.h>
#include <span>
#include <utility>

namespace opensandbox::runtime::native {

namespace {

constexpr int kAny = -1;
constexpr int kNone = -2;
constexpr int kAllow = -1;

/// Which protocols a call for a socket may name, and what it is answered for others; the first row
/// of its family and type decides. Kernels load modules for families and protocols that somebody
/// asks for: nothing but what is allowed gets that far.
struct SocketRow {
    int family;
    int type;
    std::array<int, 3> protocols;
    int otherwise;
};

constexpr std::array kSocketRows{
    SocketRow{AF_UNIX, kAny, {0, PF_UNIX, kNone}, EPROTONOSUPPORT},
    SocketRow{AF_INET, SOCK_STREAM, {0, IPPROTO_TCP, kNone}, EPROTONOSUPPORT},
    SocketRow{AF_INET, SOCK_DGRAM, {0, IPPROTO_UDP, IPPROTO_ICMP}, EPROTONOSUPPORT},
    SocketRow{AF_INET, SOCK_RAW, {kNone, kNone, kNone}, EPERM},
    SocketRow{AF_INET, kAny, {kNone, kNone, kNone}, ESOCKTNOSUPPORT},
    SocketRow{AF_INET6, SOCK_STREAM, {0, IPPROTO_TCP, kNone}, EPROTONOSUPPORT},
    SocketRow{AF_INET6, SOCK_DGRAM, {0, IPPROTO_UDP, IPPROTO_ICMPV6}, EPROTONOSUPPORT},
    SocketRow{AF_INET6, SOCK_RAW, {kNone, kNone, kNone}, EPERM},
    SocketRow{AF_INET6, kAny, {kNone, kNone, kNone}, ESOCKTNOSUPPORT},
    // Name resolution and interface listing ask the routing tables. Of the others is audit:
    // shadow's programs go on without it after this answer only.
    SocketRow{AF_NETLINK, kAny, {NETLINK_ROUTE, kNone, kNone}, EPROTONOSUPPORT},
    SocketRow{AF_PACKET, kAny, {kNone, kNone, kNone}, EPERM},
    SocketRow{kAny, kAny, {kNone, kNone, kNone}, EAFNOSUPPORT},
};

constexpr std::array kPairRows{
    SocketRow{AF_UNIX, kAny, {0, PF_UNIX, kNone}, EPROTONOSUPPORT},
    SocketRow{AF_INET, kAny, {kNone, kNone, kNone}, EOPNOTSUPP},
    SocketRow{AF_INET6, kAny, {kNone, kNone, kNone}, EOPNOTSUPP},
    SocketRow{AF_NETLINK, kAny, {kNone, kNone, kNone}, EOPNOTSUPP},
    SocketRow{kAny, kAny, {kNone, kNone, kNone}, EAFNOSUPPORT},
};

/// Requests of ioctl for which kernels load modules; the answers of kernels that have none.
struct RequestRow {
    std::uint32_t request;
    int answer;
};

constexpr RequestRow kRequestRows[] = {
    {TIOCSETD, EPERM},    // line disciplines of terminals
    {SIOCGIFBR, ENOPKG},  // bridges
    {SIOCSIFBR, ENOPKG},   {SIOCBRADDBR, ENOPKG},
    {SIOCBRDELBR, ENOPKG}, {SIOCGIFVLAN, ENOPKG},  // virtual LANs
    {SIOCSIFVLAN, ENOPKG},
};

std::uint32_t action(int answer) {
    if (answer == kAllow) return SECCOMP_RET_ALLOW;
    return SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(answer);
}

constexpr std::uint32_t offset_of_argument(unsigned argument) {
    // The lower half comes first on every architecture that we build for.
    return static_cast<std::uint32_t>(offsetof(seccomp_data, args) + argument * 8);
}

/// A BPF program put together. Each sandbox pays for its compilation, so a value is loaded once for
/// all that it is compared with.
class Rules {
  public:
    /// The 32 bits at this offset are what the next are compared with.
    Rules& load(std::uint32_t offset) {
        program_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset));
        return *this;
    }
    Rules& mask(std::uint32_t bits) {
        program_.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, bits));
        return *this;
    }
    /// Where what was loaded is this; the rules end with an answer, or what follows must load
    /// again.
    Rules& where(int value, const Rules& rules) {
        const auto skip = static_cast<std::uint8_t>(rules.program_.size());
        program_.push_back(
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(value), 0, skip));
        return append(rules);
    }
    Rules& answer(int with) {
        program_.push_back(BPF_STMT(BPF_RET | BPF_K, action(with)));
        return *this;
    }
    /// Goes on behind so many instructions.
    Rules& skip(std::size_t instructions) {
        program_.push_back(BPF_STMT(BPF_JMP | BPF_JA, static_cast<std::uint32_t>(instructions)));
        return *this;
    }
    Rules& append(const Rules& rules) {
        program_.insert(program_.end(), rules.program_.begin(), rules.program_.end());
        return *this;
    }
    [[nodiscard]] std::size_t size() const { return program_.size(); }
    [[nodiscard]] std::vector<sock_filter> take() { return std::move(program_); }

  private:
    std::vector<sock_filter> program_;
};

Rules answer(int with) {
    return Rules().answer(with);
}

Rules of_protocols(const SocketRow& row) {
    Rules rules;
    if (row.protocols[0] != kNone) rules.load(offset_of_argument(2));
    for (const int protocol : row.protocols)
        if (protocol != kNone) rules.where(protocol, answer(kAllow));
    return rules.answer(row.otherwise);
}

/// Of one family; its last row is for any type.
Rules of_types(std::span<const SocketRow> rows) {
    constexpr std::uint32_t kTypeBits = 0xf;  // the rest are flags
    Rules rules;
    if (rows.front().type != kAny) rules.load(offset_of_argument(1)).mask(kTypeBits);
    for (const SocketRow& row : rows) {
        if (row.type == kAny) return rules.append(of_protocols(row));
        rules.where(row.type, of_protocols(row));
    }
    return rules;
}

Rules of_sockets(std::span<const SocketRow> rows) {
    Rules rules;
    rules.load(offset_of_argument(0));
    while (!rows.empty()) {
        const int family = rows.front().family;
        std::size_t length = 0;
        while (length < rows.size() && rows[length].family == family)
            ++length;
        const Rules types = of_types(rows.first(length));
        rows = rows.subspan(length);
        if (family == kAny) return rules.append(types);
        rules.where(family, types);
    }
    return rules;
}

Rules of_requests() {
    Rules rules;
    rules.load(offset_of_argument(1));
    for (const RequestRow& row : kRequestRows)
        rules.where(static_cast<int>(row.request), answer(row.answer));
    return rules.answer(kAllow);
}

/// A pointer that is null.
Rules where_null(unsigned argument, const Rules& rules) {
    Rules low;
    low.load(offset_of_argument(argument)).where(0, rules);
    return Rules().load(offset_of_argument(argument) + 4).where(0, low);
}

/// The limit of core files stays as it is: at 0 the kernel would start a core_pattern's program, as
/// root of the host. Programs that set it go on as after success, and get no core file as before.
Rules of_limits() {
    constexpr unsigned kResource = 1;
    constexpr unsigned kValue = 2;
    constexpr unsigned kOld = 3;
    Rules of_core;
    // Who sets it and asks for the earlier one cannot be given that: the only one who fails.
    of_core.append(where_null(kValue, answer(kAllow))).append(where_null(kOld, answer(0)));
    of_core.answer(EPERM);
    return Rules().load(offset_of_argument(kResource)).where(RLIMIT_CORE, of_core).answer(kAllow);
}

Rules of_old_limits() {
    return Rules().load(offset_of_argument(0)).where(RLIMIT_CORE, answer(0)).answer(kAllow);
}

/// A new namespace of any kind would bring capabilities back. Of these a broker makes others.
constexpr std::uint32_t kAllNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
                                         CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
constexpr std::uint32_t kBrokerLacks = CLONE_NEWUSER | CLONE_NEWCGROUP;

Rules of_clone(FilterScope scope) {
    const bool broker = scope == FilterScope::broker;
    return Rules()
        .load(offset_of_argument(0))
        .mask(broker ? kBrokerLacks : kAllNamespaces)
        .where(0, answer(kAllow))
        .answer(EPERM);
}

/// A thread with a directory of its own.
Rules of_unshare() {
    return Rules().load(offset_of_argument(0)).where(CLONE_FS, answer(kAllow)).answer(EPERM);
}

Rules of_personality() {
    constexpr std::uint32_t kAsked = 0xffffffff;
    Rules rules;
    rules.load(offset_of_argument(0));
    for (const std::uint32_t persona :
         {std::uint32_t{PER_LINUX}, std::uint32_t{PER_LINUX32}, std::uint32_t{UNAME26},
          std::uint32_t{PER_LINUX32} | UNAME26, std::uint32_t{ADDR_NO_RANDOMIZE}, kAsked})
        rules.where(static_cast<int>(persona), answer(kAllow));
    return rules.answer(EPERM);
}

}  // namespace

std::vector<sock_filter> argument_rules(FilterScope scope) {
    std::vector<std::pair<long, Rules>> calls{
        {SYS_clone, of_clone(scope)},
        {SYS_personality, of_personality()},
        {SYS_socket, of_sockets(kSocketRows)},
        {SYS_socketpair, of_sockets(kPairRows)},
        {SYS_ioctl, of_requests()},
        {SYS_prlimit64, of_limits()},
        {SYS_setrlimit, of_old_limits()},
    };
    if (scope == FilterScope::broker) calls.emplace_back(SYS_unshare, of_unshare());
    // A number is compared once with each, and goes on behind all of them if it is none.
    Rules heads;
    Rules bodies;
    std::size_t left = calls.size();
    heads.load(offsetof(seccomp_data, nr));
    for (const auto& [call, rules] : calls) {
        --left;
        // The heads that follow, each two long, and the last jump.
        heads.where(static_cast<int>(call), Rules().skip(2 * left + 1 + bodies.size()));
        bodies.append(rules);
    }
    heads.skip(bodies.size());
    return heads.append(bodies).take();
}

}  // namespace opensandbox::runtime::native
