#include "agent/isolated/isolation.hpp"

#include "agent/isolated/landlock.hpp"
#include "agent/isolated/walls.hpp"
#include "base/identifier.hpp"
#include "base/log.hpp"

#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

/// A directory that an overlay can be tried on.
std::optional<std::string> some_directory(const IsolationConfig& config) {
    for (const char* path : {"/usr", "/etc", "/bin", "/opt", "/home", "/srv"}) {
        struct stat info{};
        if (::stat(path, &info) != 0 || !S_ISDIR(info.st_mode)) continue;
        if (!is_within(config.upper_root, path)) return path;
    }
    return std::nullopt;
}

/// Whether runs can be given the user that the request names.
bool may_become(const IsolatedSessionRequest& request) {
    if (request.uid_mode == UidMode::userns || !request.uid) return true;
    if (*request.uid == ::geteuid() && request.gid.value_or(::getegid()) == ::getegid())
        return true;
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2]{};
    if (::syscall(SYS_capget, &header, data) != 0) return false;
    constexpr std::uint32_t kNeeded = (1U << CAP_SETUID) | (1U << CAP_SETGID);
    return (data[0].effective & kNeeded) == kNeeded;
}

}  // namespace

Isolation::Isolation(asio::any_io_executor executor, Reaper& reaper, FilePool& files,
                     std::string temporary)
    : executor_(std::move(executor)),
      reaper_(reaper),
      files_(files),
      outputs_(std::move(temporary)) {}

Awaitable<Result<Preparation>> Isolation::prepare(IsolatedSessionRequest request, std::string id,
                                                  bool in_memory) {
    using Prepared = std::shared_ptr<Preparation>;
    std::function<Result<Prepared>()> work = [request = std::move(request), &config = config_,
                                              id = std::move(id), in_memory]() -> Result<Prepared> {
        Result<Preparation> made = prepare_session(request, config, id, in_memory);
        if (!made) return made.error();
        return std::make_shared<Preparation>(std::move(*made));
    };
    Result<Prepared> made = co_await files_.run(std::nullopt, std::move(work));
    if (!made) co_return made.error();
    co_return std::move(**made);
}

Awaitable<Status> Isolation::try_session(IsolatedSessionRequest request, bool in_memory) {
    std::string id = new_uuid();
    Result<Preparation> prepared = co_await prepare(request, id, in_memory);
    if (!prepared) co_return prepared.error();
    NamespacePlan plan = std::move(prepared->plan);
    auto made = co_await SessionNamespaces::create(reaper_, std::move(plan));
    Status result = made ? Status() : Status(made.error());
    if (made) {
        auto gone = std::make_shared<net::Event>(executor_);
        (*made)->first().on_exit([gone] { gone->notify(); });
        (*made)->kill();
        if (!(*made)->first().status()) co_await gone->wait_for(std::chrono::seconds(5));
    }
    auto directory = std::make_shared<SessionDirectory>(std::move(prepared->directory));
    std::function<Status()> remove = [directory]() -> Status {
        directory->remove();
        return {};
    };
    Status removed = co_await files_.run<void>(std::nullopt, std::move(remove));
    (void)removed;
    co_return result;
}

Awaitable<void> Isolation::probe() {
    std::function<Status()> sweep = [root = config_.upper_root]() -> Status {
        sweep_upper_root(root);
        return {};
    };
    Status swept = co_await files_.run<void>(std::nullopt, std::move(sweep));
    (void)swept;
    Abilities found;
    IsolatedSessionRequest plain;
    Status made = co_await try_session(plain, false);
    found.available = made.has_value();
    if (made) {
        if (auto directory = some_directory(config_)) {
            plain.mounts.emplace_back(*directory, MountMode::overlay, true);
            Status on_disk = co_await try_session(plain, false);
            Status in_memory = on_disk;
            if (!on_disk) {
                in_memory = co_await try_session(plain, true);
                found.memory_uppers = true;
                found.message = in_memory ? "uppers of overlays are kept in memory: " +
                                                on_disk.error().message()
                                          : "no overlays: " + in_memory.error().message();
            }
            found.overlay = in_memory.has_value();
            plain.mounts.clear();
        }
        plain.uid_mode = UidMode::userns;
        Status user = co_await try_session(plain, false);
        found.userns = user.has_value();
    } else {
        found.message = made.error().message();
    }
    abilities_ = std::move(found);
}

Awaitable<Isolation::Abilities> Isolation::abilities() {
    if (!abilities_) co_await probe();
    co_return *abilities_;
}

Awaitable<Result<std::shared_ptr<IsolatedSession>>> Isolation::create(
    IsolatedSessionRequest request) {
    Abilities able = co_await abilities();
    if (!able.available) co_return Error(ErrorCode::unsupported, able.message);
    if (request.uid_mode == UidMode::userns && !able.userns) {
        co_return Error(ErrorCode::unsupported, "uid_mode: user namespaces are not available");
    }
    if (!may_become(request)) {
        co_return Error(ErrorCode::unsupported,
                        "uid: this agent may not run anything as another user");
    }
    if (ending_ || sessions_.size() + beginning_ >= kMaxSessions) {
        co_return Error(ErrorCode::resource_exhausted, "there are 256 isolated sessions already");
    }
    ++beginning_;
    std::string id = new_uuid();
    Result<Preparation> prepared = co_await prepare(request, id, able.memory_uppers);
    Result<Enclosure> walls = walls_of(request.profile, config_);
    if (!prepared || !walls) {
        --beginning_;
        co_return prepared ? walls.error() : prepared.error();
    }
    NamespacePlan plan = std::move(prepared->plan);
    auto made = co_await SessionNamespaces::create(reaper_, std::move(plan));
    --beginning_;
    if (!made) co_return made.error();
    auto session =
        std::make_shared<IsolatedSession>(executor_, id, std::move(request), std::move(*prepared),
                                          std::move(*made), std::move(*walls));
    if (config_.landlock && config_.hardening) {
        Status restricted = co_await restrict(session);
        if (!restricted) {
            co_await destroy(session);
            co_return restricted.error();
        }
    }
    if (ending_) co_return Error(ErrorCode::unavailable, "the agent is ending");
    sessions_.emplace(id, session);
    watch_idle(session);
    co_return session;
}

Awaitable<Status> Isolation::restrict(std::shared_ptr<IsolatedSession> session) {
    auto ruleset = std::make_shared<UniqueFd>();
    std::function<Status()> work = [session, ruleset]() -> Status {
        Result<UniqueFd> made = make_landlock(session->writable_paths());
        if (!made) return made.error();
        *ruleset = std::move(*made);
        return {};
    };
    Identity inside(::geteuid(), ::getegid(), session->namespaces().mounts());
    Status done = co_await files_.run<void>(std::move(inside), std::move(work));
    if (done) session->restrict(std::move(*ruleset));
    co_return done;
}

void Isolation::watch_idle(const std::shared_ptr<IsolatedSession>& session) {
    std::weak_ptr<IsolatedSession> weak = session;
    session->on_idle([this, weak] {
        if (auto idle = weak.lock()) net::spawn(executor_, destroy(idle), "idle session");
    });
}

std::shared_ptr<IsolatedSession> Isolation::find(std::string_view id) const {
    auto at = sessions_.find(std::string(id));
    return at == sessions_.end() ? nullptr : at->second;
}

Awaitable<void> Isolation::destroy(std::shared_ptr<IsolatedSession> session) {
    sessions_.erase(session->id());
    co_await IsolatedSession::end(session);
    // A commit that has begun is not cut off in the middle.
    while (session->committing)
        co_await net::sleep_for(std::chrono::milliseconds(20));
    auto directory = std::make_shared<SessionDirectory>(session->take_directory());
    std::function<Status()> remove = [directory]() -> Status {
        directory->remove();
        return {};
    };
    Status removed = co_await files_.run<void>(std::nullopt, std::move(remove));
    (void)removed;
}

Awaitable<void> Isolation::end_all() {
    ending_ = true;
    for (const auto& [id, session] : sessions_)
        session->kill();
    while (!sessions_.empty()) {
        auto session = sessions_.begin()->second;
        co_await destroy(session);
    }
}

Awaitable<void> Isolation::account(std::shared_ptr<IsolatedSession> session) {
    bool on_disk = std::ranges::any_of(
        session->overlays(), [](const SessionOverlay& overlay) { return !overlay.in_memory; });
    if (!on_disk || session->state() != IsolatedSession::State::active) co_return;
    const std::uint64_t limit = config_.upper_max_bytes;
    std::function<Result<std::uint64_t>()> work = [path = session->directory().path(),
                                                   limit]() -> Result<std::uint64_t> {
        return disk_usage(path, limit);
    };
    Result<std::uint64_t> used = co_await files_.run(std::nullopt, std::move(work));
    if (used) session->over_limit = *used > limit;
}

}  // namespace opensandbox::agent
