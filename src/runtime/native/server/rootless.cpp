#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/ground/kernel/subordinate_ids.hpp"
#include "runtime/native/ground/message_socket.hpp"
#include "runtime/native/records/journal.hpp"
#include "runtime/native/records/spawner_options.hpp"
#include "runtime/native/server/native_runtime.hpp"

#include <linux/nsfs.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <string>
#include <unistd.h>
#include <vector>

namespace opensandbox::runtime::native {

namespace {

constexpr std::uint32_t kMostSubordinateIds = 65'536;

/// What newuidmap and newgidmap are to write: root is this user, the rest come from the range.
struct IdMaps {
    IdRange uids;
    IdRange gids;
};

Result<IdMaps> ids_of_this_user() {
    const std::string name = user_name(read_file_or_empty("/etc/passwd"), ::geteuid());
    IdMaps maps;
    maps.uids = subordinate_range(read_file_or_empty("/etc/subuid"), name, ::geteuid());
    maps.gids = subordinate_range(read_file_or_empty("/etc/subgid"), name, ::geteuid());
    if (maps.uids.count == 0 || maps.gids.count == 0) {
        return Error(ErrorCode::unsupported,
                     "user " + name +
                         " has no subordinate ids: root must add a range of 65536 to /etc/subuid "
                         "and /etc/subgid (usermod --add-subuids, --add-subgids)");
    }
    return maps;
}

/// Runs newuidmap or newgidmap, which carry the privilege to map ids that are not the user's own.
Status run_map_tool(const char* tool, pid_t pid, std::uint32_t own, const IdRange& range) {
    const std::uint32_t count = std::min(range.count, kMostSubordinateIds);
    std::vector<std::string> words{tool,
                                   std::to_string(pid),
                                   "0",
                                   std::to_string(own),
                                   "1",
                                   "1",
                                   std::to_string(range.first),
                                   std::to_string(count)};
    std::vector<char*> argv;
    for (std::string& word : words)
        argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_t child = 0;
    const int error = ::posix_spawnp(&child, tool, nullptr, nullptr, argv.data(), environ);
    if (error == ENOENT) {
        return Error(ErrorCode::unsupported, std::string(tool) + " is missing: install uidmap");
    }
    if (error != 0) return Error::from_errno(error, std::string("run ") + tool);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
    return Error(ErrorCode::unsupported, std::string(tool) + " refused to map the ids of " +
                                             "/etc/subuid and /etc/subgid for this user");
}

/// From outside, since inside the namespace the tools would have no privilege: a child of this
/// process that stays where it is maps the ids once this process is in.
Status make_namespace() {
    auto maps = ids_of_this_user();
    if (!maps) return maps.error();
    auto pair = message_pair();
    if (!pair) return pair.error();
    const uid_t uid = ::geteuid();
    const gid_t gid = ::getegid();
    const pid_t target = ::getpid();
    const pid_t child = ::fork();
    if (child < 0) return last_error("fork");
    if (child == 0) {
        pair->first.reset();
        auto go = receive_message(pair->second.get());
        if (!go || go->closed) ::_exit(1);
        auto status = run_map_tool("newuidmap", target, uid, maps->uids);
        if (status) status = run_map_tool("newgidmap", target, gid, maps->gids);
        (void)send_message(pair->second.get(), status ? "done" : status.error().message());
        ::_exit(0);
    }
    pair->second.reset();
    Status status = check(::unshare(CLONE_NEWUSER), "unshare a user namespace");
    if (status) status = send_message(pair->first.get(), "go");
    if (status) {
        auto answer = receive_message(pair->first.get());
        if (!answer)
            status = answer.error();
        else if (answer->bytes != "done")
            status = Error(ErrorCode::unsupported, answer->bytes);
    }
    pair->first.reset();
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
    return status;
}

UniqueFd open_namespace(pid_t pid) {
    const std::string path = "/proc/" + std::to_string(pid) + "/ns/user";
    return UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

UniqueFd namespace_of_spawner(const std::filesystem::path& socket_path) {
    const auto socket = connect_message_socket(socket_path);
    if (!socket) return {};
    ucred peer{};
    socklen_t size = sizeof peer;
    if (::getsockopt(socket->get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0) return {};
    return open_namespace(peer.pid);
}

/// Sandboxes outlive a spawner that crashed; theirs is a child of the namespace that is wanted.
UniqueFd namespace_of_sandboxes(const std::filesystem::path& journal) {
    std::error_code error;
    for (const auto& file : std::filesystem::directory_iterator(journal, error)) {
        const auto entry = parse_entry(read_file_or_empty(file.path()));
        if (!entry || entry->exit || (!entry->boot.empty() && entry->boot != boot_id())) continue;
        const UniqueFd own = open_namespace(entry->pid);
        if (!own || process_start_time(entry->pid) != entry->start_time) continue;
        UniqueFd parent(::ioctl(own.get(), NS_GET_PARENT));
        if (parent) return parent;
    }
    return {};
}

}  // namespace

Status enter_user_namespace(const std::filesystem::path& state_directory) {
    SpawnerOptions options;
    options.state_directory = state_directory;
    UniqueFd existing = namespace_of_spawner(options.socket_path());
    if (!existing) existing = namespace_of_sandboxes(journal_directory(state_directory));
    auto entered = existing ? check(::setns(existing.get(), CLONE_NEWUSER),
                                    "enter the user namespace of the sandboxes that run")
                            : make_namespace();
    if (!entered) return entered;
    return check(::unshare(CLONE_NEWNS), "unshare mounts");
}

}  // namespace opensandbox::runtime::native
