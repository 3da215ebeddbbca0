#include "runtime/native/network/pasta.hpp"

#include "runtime/host_command.hpp"
#include "runtime/native/ground/kernel/signals.hpp"

#include <sys/prctl.h>

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <unistd.h>

namespace opensandbox::runtime::native {

namespace {

constexpr const char* kTunDevice = "/dev/net/tun";

/// Beside the network that own_range6() makes of the tag.
std::string uplink_network6(const std::string& tag) {
    return "fd6f:7362:" + tag.substr(0, 4) + ":" + tag.substr(4) + "01::";
}

}  // namespace

Result<std::string> find_pasta() {
    std::string program = find_host_program("pasta");
    if (program.empty()) return Error(ErrorCode::unsupported, "pasta is missing: install passt");
    const UniqueFd tun(::open(kTunDevice, O_RDWR | O_CLOEXEC));
    if (!tun) {
        const Error why = last_error(std::string("pasta needs ") + kTunDevice);
        return Error(ErrorCode::unsupported, why.message());
    }
    return program;
}

std::vector<std::string> pasta_arguments(const PastaSettings& settings) {
    std::vector<std::string> out{"pasta",        "--foreground",
                                 "--quiet",      "--netns-only",
                                 "--netns",      settings.network_namespace.string(),
                                 "--config-net", "--no-netns-quit",
                                 "--ns-ifname",  kUplinkName,
                                 "--mtu",        std::to_string(kUplinkMtu),
                                 "--no-map-gw",  "--no-dhcp",
                                 "--no-dhcpv6",  "--no-ra",
                                 "--tcp-ports",  "none",
                                 "--udp-ports",  "none",
                                 "--tcp-ns",     "none",
                                 "--udp-ns",     "none"};
    if (settings.ipv4) {
        out.insert(out.end(),
                   {"--address", "169.254.77.2", "--netmask", "30", "--gateway", "169.254.77.1"});
    } else {
        out.emplace_back("--ipv6-only");
    }
    if (settings.ipv6) {
        const std::string network = uplink_network6(settings.tag);
        out.insert(out.end(), {"--address", network + "2", "--gateway", network + "1"});
    } else {
        out.emplace_back("--ipv4-only");
    }
    return out;
}

Result<ClonedChild> start_pasta(const PastaSettings& settings) {
    std::vector<std::string> words = pasta_arguments(settings);
    std::vector<char*> argv;
    for (std::string& word : words)
        argv.push_back(word.data());
    argv.push_back(nullptr);
    const pid_t parent = ::getpid();
    auto child = clone_process(0, -1);
    if (!child || child->pid > 0) return child;
    reset_signals();
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    ::close_range(STDERR_FILENO + 1, ~0U, 0);
    char* const environment[] = {nullptr};
    ::execve(settings.program.c_str(), argv.data(), environment);
    ::_exit(127);
}

}  // namespace opensandbox::runtime::native
