#include "runtime/native/inside/gvisor_slot.hpp"

#include "runtime/native/ground/confinement/capabilities.hpp"
#include "runtime/native/ground/confinement/seccomp_filter.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/inside/gvisor_bundle.hpp"
#include "runtime/native/inside/gvisor_link.hpp"
#include "runtime/native/inside/gvisor_runner.hpp"
#include "runtime/native/inside/slot_process.hpp"

#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <fcntl.h>
#include <unistd.h>

namespace opensandbox::runtime::native {

namespace {

/// Connections to the agent at once; as many wait in its socket's queue.
constexpr std::size_t kMostConnections = 4096;

/// The descriptors of a CreateRequest.
struct Given {
    UniqueFd listener;
    UniqueFd output;
    UniqueFd end;
    Activation tree;
    std::vector<UniqueFd> published;
};

Result<Given> sort_out(const CreateRequest& request, std::vector<UniqueFd> descriptors) {
    const bool usr = !request.plan.image.usr.empty();
    const auto from_host =
        std::ranges::count_if(request.volumes, [](const auto& v) { return !v.source.empty(); });
    const std::size_t expected = 4U + (usr ? 1U : 0U) + static_cast<std::size_t>(from_host) +
                                 request.plan.network.published.size();
    if (descriptors.size() != expected) {
        return Error(ErrorCode::protocol, "slot: unexpected descriptors");
    }
    auto next = descriptors.begin();
    Given out;
    out.listener = std::move(*next++);
    out.tree.root = std::move(*next++);
    out.output = std::move(*next++);
    out.end = std::move(*next++);
    if (usr) out.tree.usr = std::move(*next++);
    for (const VolumeMount& volume : request.volumes)
        out.tree.volumes.push_back(volume.source.empty() ? UniqueFd() : std::move(*next++));
    while (next != descriptors.end())
        out.published.push_back(std::move(*next++));
    return out;
}

Status make_directories() {
    // runsc makes the root of gVisor's kernel, which is empty, on /tmp.
    for (const char* path : {"/bundle", "/state", "/tmp", "/volumes"}) {
        if (::mkdir(path, 0755) < 0) return last_error(std::string("mkdir ") + path);
    }
    return {};
}

Status write_bundle(const CreateRequest& request) {
    const std::string text = format_bundle(request);
    const UniqueFd file(::open("/bundle/config.json", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    if (!file) return last_error("create the bundle");
    return check(::write(file.get(), text.data(), text.size()), "write the bundle");
}

/// Where runsc finds it; it mounts it inside.
Status attach(const UniqueFd& mount, const std::string& path) {
    struct stat info{};
    if (::fstat(mount.get(), &info) < 0) return last_error("look at " + path);
    if (S_ISDIR(info.st_mode)) {
        if (::mkdir(path.c_str(), 0755) < 0) return last_error("mkdir " + path);
    } else if (!UniqueFd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644))) {
        return last_error("create " + path);
    }
    return check(::move_mount(mount.get(), "", AT_FDCWD, path.c_str(), MOVE_MOUNT_F_EMPTY_PATH),
                 "mount " + path);
}

Status attach_volumes(std::vector<UniqueFd>& volumes) {
    for (std::size_t i = 0; i < volumes.size(); ++i) {
        const UniqueFd volume = std::move(volumes[i]);
        if (!volume) continue;
        if (auto s = attach(volume, gvisor_volume_path(i)); !s) return s;
    }
    return {};
}

/// The image's, or one as every image should have.
Status make_temporary(int root) {
    if (::mkdirat(root, "tmp", 01777) < 0) {
        struct stat info{};
        if (errno != EEXIST) return last_error("mkdir /tmp");
        if (::fstatat(root, "tmp", &info, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(info.st_mode)) {
            return Error(ErrorCode::invalid_argument, "image: /tmp is not a directory");
        }
        return {};
    }
    return check(::fchmodat(root, "tmp", 01777, 0), "chmod /tmp");
}

Status prepare(const SlotTerms& terms, const CreateRequest& request, Activation& tree) {
    if (auto s = make_directories(); !s) return s;
    auto root = attach_root(tree);
    if (!root) return root.error().within("root");
    if (auto s = make_temporary(root->get()); !s) return s.error().within("root");
    tree.root.reset();
    tree.usr.reset();
    if (auto s = attach_volumes(tree.volumes); !s) return s;
    if (auto s = write_names(terms, request.plan.network.hostname); !s) return s;
    if (!terms.address.empty()) {
        if (auto s = limit_network(request); !s) return s.error().within("network");
    }
    if (auto s = leave_network(); !s) return s.error().within("network");
    return write_bundle(request);
}

Result<UniqueFd> request_file(CreateRequest request, const std::vector<sock_filter>& filter) {
    UniqueFd file(::memfd_create("request", MFD_CLOEXEC));
    if (!file) return last_error("make the guest's request");
    std::string text = format_guest_request(std::move(request), filter);
    const ssize_t written = ::write(file.get(), text.data(), text.size());
    const bool whole = written == static_cast<ssize_t>(text.size());
    ::explicit_bzero(text.data(), text.size());
    if (!whole) return last_error("write the guest's request");
    return file;
}

std::vector<agent::Publication> relays(const CreateRequest& request, Given& given) {
    std::vector<agent::Publication> out;
    const auto add = [&](UniqueFd listener, std::size_t port, std::size_t most) {
        agent::Publication& relay =
            out.emplace_back(std::move(listener), static_cast<std::uint16_t>(port));
        relay.host = kGvisorAgentAddress;
        relay.most = most;
    };
    add(std::move(given.listener), kGvisorAgentPort, kMostConnections);
    for (std::size_t i = 0; i < request.plan.network.published.size(); ++i)
        add(std::move(given.published[i]), kGvisorAgentPort + 1 + i, agent::Publication::kMost);
    return out;
}

/// It still hands bytes on, and reaps.
Status fence_in_runner(const SlotTerms& terms) {
    if (auto s = check(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs"); !s) return s;
    if (auto s = drop_capabilities(0); !s) return s;
    return install_seccomp_filter(terms.filter);
}

}  // namespace

void run_gvisor_slot(const SlotTerms& terms, std::vector<UniqueFd> programs) {
    std::vector<UniqueFd> descriptors;
    Message message = next_message(&descriptors);
    auto* request = std::get_if<CreateRequest>(&message);
    if (!request || programs.size() != 2) {
        fail(0, Error(ErrorCode::protocol, "slot: unexpected message"));
    }
    const std::uint64_t number = request->request;
    auto given = sort_out(*request, std::move(descriptors));
    if (!given) fail(number, given.error());
    if (auto s = attach(programs[1], kGvisorAgentSource); !s) fail(number, s.error());
    if (auto s = prepare(terms, *request, given->tree); !s) fail(number, s.error());
    GvisorRunner::Parts parts;
    parts.runsc = std::move(programs[0]);
    parts.publications = relays(*request, *given);
    parts.output = std::move(given->output);
    parts.end = std::move(given->end);
    auto file = request_file(std::move(*request), terms.filter);
    if (!file) fail(number, file.error());
    parts.request = std::move(*file);
    GvisorRunner runner(number, std::move(parts));
    ::_exit(runner.run([&terms] { return fence_in_runner(terms); }));
}

}  // namespace opensandbox::runtime::native
