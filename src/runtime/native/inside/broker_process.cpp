#include "runtime/native/inside/broker_process.hpp"

#include "agent/api/broker.hpp"
#include "agent/isolated/config.hpp"
#include "runtime/native/ground/confinement/capabilities.hpp"
#include "runtime/native/ground/confinement/seccomp_filter.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/ground/kernel/own_program.hpp"
#include "runtime/native/ground/message_socket.hpp"
#include "runtime/native/inside/slot_process.hpp"

#include <linux/capability.h>
#include <linux/mount.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <grp.h>
#include <initializer_list>
#include <sched.h>
#include <unistd.h>

namespace opensandbox::runtime::native {

namespace {

/// Where the descriptors are that it keeps.
constexpr int kEptControl = 3;
constexpr int kEptAgent = 4;
constexpr int kEptLayer = 5;
constexpr int kEptTerms = 6;
constexpr int kEpt = 4;

Status enter_sandbox() {
    constexpr int kSpaces =
        CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
    if (auto s = check(::setns(kEptAgent, kSpaces), "setns"); !s) return s;
    ::close(kEptAgent);
    if (::setresgid(0, 0, 0) < 0 || ::setresuid(0, 0, 0) < 0) return last_error("set ids");
    if (::setgroups(0, nullptr) < 0) return last_error("setgroups");
    // What it mounts is not to be seen by the sandbox.
    if (auto s = check(::unshare(CLONE_NEWNS), "unshare"); !s) return s;
    return check(::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), "private mounts");
}

/// Where the image's own file system could hold no uppers, the sandbox's layer can. Without it they
/// are kept in memory.
void mount_session_layer() {
    const std::string root = agent::IsolationConfig().upper_root;
    std::error_code failed;
    std::filesystem::create_directories(root, failed);
    (void)::move_mount(kEptLayer, "", AT_FDCWD, root.c_str(), MOVE_MOUNT_F_EMPTY_PATH);
}

constexpr const char* kDoorName = "s";

/// A socket in a directory that is attached nowhere: who has no descriptor of it cannot connect.
struct Door {
    UniqueFd listener;
    UniqueFd path;  ///< what connects to it
};
Result<Door> open_door() {
    const UniqueFd context(static_cast<int>(::syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC)));
    if (!context) return last_error("fsopen");
    for (const auto& [key, value] : std::initializer_list<std::pair<const char*, const char*>>{
             {"size", "4k"}, {"nr_inodes", "2"}, {"mode", "700"}}) {
        if (::syscall(SYS_fsconfig, context.get(), FSCONFIG_SET_STRING, key, value, 0) < 0) {
            return last_error("fsconfig");
        }
    }
    if (::syscall(SYS_fsconfig, context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) < 0) {
        return last_error("fsconfig");
    }
    const UniqueFd directory(
        static_cast<int>(::syscall(SYS_fsmount, context.get(), FSMOUNT_CLOEXEC, MOUNT_ATTR_NODEV)));
    if (!directory) return last_error("fsmount");
    Door door;
    door.listener.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!door.listener) return last_error("socket");
    // Everybody inside can read the name that it is bound to.
    if (::fchdir(directory.get()) < 0) return last_error("fchdir");
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    address.sun_path[0] = *kDoorName;
    if (::bind(door.listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) < 0 ||
        ::listen(door.listener.get(), SOMAXCONN) < 0 || ::chdir("/") < 0) {
        return last_error("listen");
    }
    door.path.reset(::openat(directory.get(), kDoorName, O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!door.path) return last_error("open the socket");
    return door;
}

Status fence_in_broker() {
    constexpr std::uint64_t kMore = std::uint64_t{1} << CAP_SYS_ADMIN | std::uint64_t{1}
                                                                            << CAP_NET_ADMIN;
    if (auto s = check(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs"); !s) return s;
    if (auto s = drop_capabilities(sandbox_capabilities() | kMore); !s) return s.error();
    if (auto s = install_seccomp_filter(compile_broker_filter()); !s) return s;
    return check(::prctl(PR_SET_DUMPABLE, 0), "prctl dumpable");
}

Result<SlotTerms> take_terms() {
    auto received = receive_message(kEptTerms);
    ::close(kEptTerms);
    if (!received) return received.error();
    auto message = decode(received->bytes);
    if (!message) return message.error();
    if (auto* terms = std::get_if<SlotTerms>(&*message)) return std::move(*terms);
    return Error(ErrorCode::protocol, "unexpected message");
}

Result<Door> become_broker() {
    if (auto s = settle_process(); !s) return s.error();
    if (auto s = enter_sandbox(); !s) return s.error().within("enter the sandbox");
    mount_session_layer();
    ::close(kEptLayer);
    auto door = open_door();
    if (!door) return door.error().within("socket");
    if (auto s = fence_in_broker(); !s) return s.error().within("fence in");
    return door;
}

/// The agent's end may be full, or gone: nobody waits for it.
void tell_agent(std::string_view text, const UniqueFd* descriptor) {
    const int number = descriptor ? descriptor->get() : -1;
    const std::span<const int> passed =
        descriptor ? std::span<const int>(&number, 1) : std::span<const int>();
    (void)send_message(kEptControl, text, passed);
    ::close(kEptControl);
}

}  // namespace

void run_broker_process(int program, const BrokerSeed& seed) {
    auto own =
        keep_for_new_program(std::array{seed.control, seed.agent, seed.layer, seed.terms}, program);
    if (!own || !await_message(kEptTerms)) ::_exit(1);
    auto limited = check(::setrlimit(RLIMIT_NOFILE, &seed.open_files), "limit open files");
    const Error failed = limited ? start_anew(*own, "broker") : limited.error();
    tell_agent(failed.message(), nullptr);
    ::_exit(1);
}

int broker_main(int, char**) {
    if (!adopt_descriptors(kEpt)) return 2;
    auto terms = take_terms();
    auto door = terms ? become_broker() : Result<Door>(terms.error());
    if (!door) {
        tell_agent(door.error().message(), nullptr);
        return 1;
    }
    tell_agent("broker", &door->path);
    agent::BrokerOptions options;
    options.listener = std::move(door->listener);
    options.filter = std::move(terms->filter);
    options.capabilities = sandbox_capabilities();
    door->path.reset();
    ::_exit(agent::run_broker(std::move(options)));
}

}  // namespace opensandbox::runtime::native
