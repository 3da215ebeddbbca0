#include "doctor/probe.hpp"
#include "runtime/native/ground/confinement/cgroup.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/network/firewall.hpp"
#include "runtime/native/network/host_addresses.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <sched.h>
#include <set>
#include <spawn.h>
#include <sstream>
#include <unistd.h>

namespace opensandbox::doctor {

using runtime::native::check;
using runtime::native::read_file_or_empty;

namespace {

/// The group of this process in the one tree of v2, which is what may have been delegated to it.
std::string own_group() {
    std::istringstream lines(read_file_or_empty("/proc/self/cgroup"));
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("0::")) return line.substr(3);
    }
    return "/";
}

/// What `iptables -S FORWARD` says, whichever of its two engines is behind it; empty without it.
std::string forward_rules() {
    std::string out;
    std::array<int, 2> ends{-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC) < 0) return out;
    const UniqueFd reading(ends[0]);
    UniqueFd writing(ends[1]);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, writing.get(), STDOUT_FILENO);
    ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    std::array<std::string, 4> words{"iptables", "-w", "-S", "FORWARD"};
    std::array<char*, 5> argv{words[0].data(), words[1].data(), words[2].data(), words[3].data(),
                              nullptr};
    pid_t pid = 0;
    const int error = ::posix_spawnp(&pid, "iptables", &actions, nullptr, argv.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    writing.reset();
    if (error != 0) return out;
    std::array<char, 4096> buffer;
    for (ssize_t got = 0; (got = ::read(reading.get(), buffer.data(), buffer.size())) > 0;)
        out.append(buffer.data(), static_cast<std::size_t>(got));
    ::waitpid(pid, nullptr, 0);
    return out;
}

/// Our own rules, in a network namespace that goes with the child.
Status try_firewall() {
    const int kinds = ::geteuid() == 0 ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET;
    if (auto s = check(::unshare(kinds), "unshare a network namespace"); !s) return s;
    auto range = net::Ipv4Range::parse("10.77.0.0/16");
    if (!range) return range.error();
    return runtime::native::install_firewall({"opensandbox_doctor", *range, "osbdoctor"});
}

}  // namespace

void probe_cgroups(HostFacts& facts) {
    std::set<std::string> usable;
    for (const auto& tree :
         runtime::native::find_hierarchies(read_file_or_empty("/proc/self/mounts"))) {
        (tree.unified ? facts.cgroups.v2 : facts.cgroups.v1) = true;
        auto directory = tree.base;
        if (tree.unified && !facts.root) directory += own_group();
        if (!runtime::native::can_hold_groups(directory)) continue;
        facts.cgroups.freezer |= tree.unified || tree.controllers.contains("freezer");
        usable.insert(tree.controllers.begin(), tree.controllers.end());
        if (!tree.unified) continue;
        std::istringstream words(read_file_or_empty(directory / "cgroup.controllers"));
        for (std::string word; words >> word;)
            usable.insert(word);
    }
    for (const char* wanted : {"cpu", "memory", "pids", "io"}) {
        if (usable.contains(wanted)) facts.cgroups.controllers.emplace_back(wanted);
    }
}

void probe_network(HostFacts& facts) {
    const auto tried = in_child(try_firewall);
    if (!tried) facts.network.firewall_problem = tried.error().message();
    constexpr const char* kForwarding = "/proc/sys/net/ipv4/ip_forward";
    facts.network.forwarding = read_file_or_empty(kForwarding).starts_with("1");
    facts.network.forwarding_fixed = ::access(kForwarding, W_OK) != 0;
    const std::string ipv6 = "/proc/sys/net/ipv6/conf/all/";
    facts.network.ipv6 = read_file_or_empty(ipv6 + "disable_ipv6").starts_with("0");
    facts.network.way_out6 =
        runtime::native::has_default_route6(read_file_or_empty("/proc/net/ipv6_route"));
    facts.network.forwarding6 = read_file_or_empty(ipv6 + "forwarding").starts_with("1");
    facts.network.forward_dropped =
        facts.root && forward_rules().find("-P FORWARD DROP") != std::string::npos;
}

}  // namespace opensandbox::doctor
