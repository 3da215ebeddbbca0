#include "agent/isolated/preparation.hpp"

#include "agent/isolated/overlay_mount.hpp"

#include <linux/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

/// A file or directory, opened once: what is checked is what is mounted.
struct Source {
    UniqueFd fd;
    std::string real;  ///< its path without links
    bool directory = false;
};

Result<Source> open_source(const std::string& field, const std::string& path) {
    Source source;
    source.fd.reset(::open(path.c_str(), O_PATH | O_CLOEXEC));
    if (!source.fd) return invalid(Error::from_errno(errno, field + ": " + path).message());
    struct stat info{};
    if (::fstat(source.fd.get(), &info) != 0) return Error::from_errno(errno, path);
    source.directory = S_ISDIR(info.st_mode);
    if (!source.directory && !S_ISREG(info.st_mode)) {
        return invalid(field + ": " + path + " is neither a file nor a directory");
    }
    std::array<char, PATH_MAX> real{};
    std::string link = "/proc/self/fd/" + std::to_string(source.fd.get());
    ssize_t size = ::readlink(link.c_str(), real.data(), real.size());
    if (size <= 0) return Error::from_errno(errno, "resolve " + path);
    source.real.assign(real.data(), static_cast<std::size_t>(size));
    return source;
}

bool is_allowed(const std::string& real, const IsolationConfig& config) {
    return std::ranges::any_of(config.allowed_writable, [&](const std::string& allowed) {
        std::error_code failed;
        std::string root = std::filesystem::canonical(allowed, failed).string();
        return !failed && is_within(real, root);
    });
}

/// The session's own storage must not be seen through one of its mounts.
Status check_apart(const std::string& field, const std::string& path,
                   const IsolationConfig& config) {
    if (!is_within(path, config.upper_root) && !is_within(config.upper_root, path)) return {};
    return invalid(field + ": " + path + " overlaps with the directory of uppers, " +
                   config.upper_root);
}

Result<Attachment> bind_source(const std::string& field, const Source& source, std::string target,
                               bool read_only, const IsolationConfig& config) {
    if (Status apart = check_apart(field, source.real, config); !apart) return apart.error();
    Attachment out;
    out.target = std::move(target);
    out.directory = source.directory;
    out.read_only = read_only;
    unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE;
    out.source.reset(static_cast<int>(::syscall(SYS_open_tree, source.fd.get(), "", flags)));
    if (out.source) return out;
    Error refused = Error::from_errno(errno, field + ": bind " + source.real);
    if (refused.code() != ErrorCode::permission_denied) return refused;
    return Error(ErrorCode::unsupported,
                 "isolation is not available: this agent may not mount (it needs CAP_SYS_ADMIN and "
                 "a system call filter that lets it)");
}

Status add_overlay(const WorkMount& mount, std::size_t number, const IsolationConfig& config,
                   bool in_memory, Preparation& out) {
    Attachment attachment;
    attachment.target = mount.path;
    attachment.lower = mount.path;
    attachment.overlay = true;
    attachment.in_memory = in_memory || !mount.persist;
    attachment.user_attributes = needs_user_attributes();
    std::string name = std::to_string(number);
    std::string base = attachment.in_memory ? config.upper_root + "/memory/" + name
                                            : out.directory.path() + "/" + name;
    attachment.upper = base + "/upper";
    attachment.work = base + "/work";
    if (!attachment.in_memory) {
        if (Status made = out.directory.make_layers(name); !made) return made;
    }
    if (mount.persist) {
        SessionOverlay overlay;
        overlay.path = mount.path;
        overlay.lower.reset(::open(mount.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (!overlay.lower) return Error::from_errno(errno, mount.path);
        overlay.upper = attachment.upper;
        overlay.work = attachment.work;
        overlay.in_memory = attachment.in_memory;
        overlay.user_attributes = attachment.user_attributes;
        overlay.since = current_time();
        out.overlays.push_back(std::move(overlay));
    }
    out.plan.attachments.push_back(std::move(attachment));
    return {};
}

Status add_mounts(const IsolatedSessionRequest& request, const IsolationConfig& config,
                  bool in_memory, Preparation& out) {
    for (std::size_t i = 0; i < request.mounts.size(); ++i) {
        const WorkMount& mount = request.mounts[i];
        std::string field = i == 0 && request.has_workspace ? "workspace.path" : "overlays.path";
        Result<Source> source = open_source(field, mount.path);
        if (!source) return source.error();
        if (!source->directory) return invalid(field + ": " + mount.path + " is not a directory");
        if (Status apart = check_apart(field, source->real, config); !apart) return apart;
        if (mount.mode == MountMode::overlay) {
            if (Status added = add_overlay(mount, i, config, in_memory, out); !added) return added;
            continue;
        }
        auto bound =
            bind_source(field, *source, mount.path, mount.mode == MountMode::read_only, config);
        if (!bound) return bound.error();
        out.plan.attachments.push_back(std::move(*bound));
    }
    return {};
}

Status add_allowed(const std::string& field, const std::string& from, const std::string& to,
                   bool read_only, const IsolationConfig& config, Preparation& out) {
    Result<Source> source = open_source(field, from);
    if (!source) return source.error();
    if (!is_allowed(source->real, config)) {
        return invalid(field + ": " + from + " is outside of what may be mounted");
    }
    auto bound = bind_source(field, *source, to, read_only, config);
    if (!bound) return bound.error();
    out.plan.attachments.push_back(std::move(*bound));
    return {};
}

void set_users(const IsolatedSessionRequest& request, NamespacePlan& plan) {
    uid_t uid = ::geteuid();
    gid_t gid = ::getegid();
    uid_t inside = request.uid.value_or(uid);
    gid_t inside_group = request.gid.value_or(request.uid ? inside : gid);
    plan.user_namespace = request.uid_mode == UidMode::userns;
    if (plan.user_namespace) {
        plan.uid_map = std::to_string(inside) + " " + std::to_string(uid) + " 1";
        plan.gid_map = std::to_string(inside_group) + " " + std::to_string(gid) + " 1";
        inside = uid;
        inside_group = gid;
    }
    plan.uid = inside;
    plan.gid = inside_group;
}

}  // namespace

timespec current_time() {
    timespec time{};
    ::clock_gettime(CLOCK_REALTIME, &time);
    return time;
}

Result<Preparation> prepare_session(const IsolatedSessionRequest& request,
                                    const IsolationConfig& config, const std::string& id,
                                    bool in_memory) {
    Preparation out;
    Result<SessionDirectory> directory = SessionDirectory::create(config.upper_root, id);
    if (!directory) return directory.error();
    out.directory = std::move(*directory);
    if (Status added = add_mounts(request, config, in_memory, out); !added) return added.error();
    for (const std::string& path : request.extra_writable) {
        Status added = add_allowed("extra_writable", path, path, false, config, out);
        if (!added) return added.error();
    }
    for (const BindMount& item : request.binds) {
        Status added =
            add_allowed("binds.source", item.source, item.destination, item.read_only, config, out);
        if (!added) return added.error();
    }
    bool has_tmp = std::ranges::any_of(
        out.plan.attachments, [](const Attachment& item) { return item.target == "/tmp"; });
    if (request.profile == IsolationProfile::balanced && !has_tmp) {
        Result<Source> shared = open_source("/tmp", "/tmp");
        if (!shared) return shared.error();
        auto bound = bind_source("/tmp", *shared, "/tmp", false, config);
        if (!bound) return bound.error();
        out.plan.attachments.push_back(std::move(*bound));
    }
    std::ranges::sort(out.plan.attachments, {}, [](const Attachment& attachment) {
        return std::pair(std::ranges::count(attachment.target, '/'),
                         std::string_view(attachment.target));
    });
    NamespacePlan& plan = out.plan;
    plan.private_tmp = request.profile == IsolationProfile::strict;
    plan.share_net = request.share_net;
    plan.upper_root = config.upper_root;
    plan.first.filter = config.filter;
    std::string size = ",size=" + std::to_string(config.upper_max_bytes);
    plan.memory_options = "mode=700" + size;
    plan.scratch_options = "mode=1777" + size;
    set_users(request, plan);
    return out;
}

}  // namespace opensandbox::agent
