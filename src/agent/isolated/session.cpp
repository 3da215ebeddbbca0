#include "agent/isolated/session.hpp"

#include "base/json_string.hpp"

#include <algorithm>

namespace opensandbox::agent {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kEndGrace{10};

std::string_view name_of(IsolatedSession::State state) {
    switch (state) {
        case IsolatedSession::State::active: return "active";
        case IsolatedSession::State::dead: return "dead";
        case IsolatedSession::State::destroyed: break;
    }
    return "destroyed";
}

}  // namespace

std::string BackgroundRun::status_json(const std::string& session) const {
    std::string out = R"({"session_id":")" + session + R"(","run_id":")" + id + '"';
    out += finished_at ? ",\"running\":false" : ",\"running\":true";
    out += R"(,"started_at":")" + to_rfc3339(started_at) + '"';
    if (exit_code) {
        out += ",\"exit_code\":";
        append_integer(out, *exit_code);
    }
    if (!error.empty()) {
        out += ",\"error\":";
        append_json_string(out, error);
    }
    if (finished_at) out += R"(,"finished_at":")" + to_rfc3339(*finished_at) + '"';
    return out + "}";
}

IsolatedSession::IsolatedSession(asio::any_io_executor executor, std::string id,
                                 IsolatedSessionRequest request, Preparation preparation,
                                 std::shared_ptr<SessionNamespaces> namespaces, Enclosure walls)
    : executor_(std::move(executor)),
      id_(std::move(id)),
      request_(std::move(request)),
      directory_(std::move(preparation.directory)),
      overlays_(std::move(preparation.overlays)),
      namespaces_(std::move(namespaces)),
      enclosure_(std::move(walls)),
      created_at_(now()),
      last_run_at_(created_at_),
      active_at_(steady_clock::now()) {
    enclosure_.namespaces = namespaces_->descriptors();
    for (const WorkMount& mount : request_.mounts) {
        // What is thrown away with the session takes no writes from outside (execd contract 9).
        bool writable = mount.mode == MountMode::read_write ||
                        (mount.mode == MountMode::overlay && mount.persist);
        places_.emplace_back(mount.path, writable);
    }
    for (const std::string& path : request_.extra_writable)
        places_.emplace_back(path, true);
    for (const BindMount& bind : request_.binds)
        places_.emplace_back(bind.destination, !bind.read_only);
}

IsolatedSession::State IsolatedSession::state() const {
    if (destroyed_) return State::destroyed;
    return namespaces_->first().status() ? State::dead : State::active;
}

std::string IsolatedSession::created_json() const {
    return R"({"session_id":")" + id_ + R"(","created_at":")" + to_rfc3339(created_at_) + '"' +
           request_.echo() + "}";
}

std::string IsolatedSession::state_json(bool summary) const {
    std::string out = "{";
    if (summary) out += R"("session_id":")" + id_ + R"(",)";
    out += R"("status":")";
    out += name_of(state());
    out += R"(","created_at":")" + to_rfc3339(created_at_) + R"(","last_run_at":")" +
           to_rfc3339(last_run_at_) + R"(","idle_remaining_seconds":)";
    if (request_.idle_timeout.count() == 0) {
        out += "null";
    } else {
        auto idle = busy() ? steady_clock::duration{0} : steady_clock::now() - active_at_;
        auto left = std::chrono::ceil<std::chrono::seconds>(request_.idle_timeout - idle);
        append_integer(out, std::max<std::int64_t>(left.count(), 0));
    }
    if (!summary) out += request_.echo();
    return out + "}";
}

std::optional<IsolatedSession::Place> IsolatedSession::place_of(std::string_view path) const {
    const Place* deepest = nullptr;
    for (const Place& place : places_) {
        if (!is_within(path, place.path)) continue;
        if (!deepest || place.path.size() > deepest->path.size()) deepest = &place;
    }
    return deepest ? std::optional<Place>(*deepest) : std::nullopt;
}

std::vector<std::string> IsolatedSession::places_below(std::string_view path) const {
    std::vector<std::string> below;
    for (const Place& place : places_) {
        if (place.path != path && is_within(place.path, path)) below.push_back(place.path);
    }
    std::ranges::sort(below);
    return below;
}

std::vector<std::string> IsolatedSession::writable_paths() const {
    std::vector<std::string> paths{"/tmp", "/var/tmp", "/run", "/dev", "/proc"};
    if (request_.profile == IsolationProfile::balanced) std::erase(paths, "/var/tmp");
    for (const WorkMount& mount : request_.mounts) {
        if (mount.mode != MountMode::read_only) paths.push_back(mount.path);
    }
    for (const std::string& path : request_.extra_writable)
        paths.push_back(path);
    for (const BindMount& bind : request_.binds) {
        if (!bind.read_only) paths.push_back(bind.destination);
    }
    return paths;
}

IsolatedSession::Turn::~Turn() {
    if (!session_) return;
    session_->running_ = false;
    session_->touch(false);
    if (session_->waiting_.empty()) return;
    auto next = std::move(session_->waiting_.front());
    session_->waiting_.pop_front();
    session_->running_ = true;
    next->notify();
}

Awaitable<IsolatedSession::Turn> IsolatedSession::take_turn(
    std::shared_ptr<IsolatedSession> session) {
    if (session->running_) {
        auto granted = std::make_shared<net::Event>(session->executor_);
        session->waiting_.push_back(granted);
        co_await granted->wait();
    }
    session->running_ = true;
    session->idle_.reset();
    co_return Turn(session);
}

void IsolatedSession::add(std::shared_ptr<BackgroundRun> run) {
    run_order_.push_back(run->id);
    runs_.emplace(run->id, std::move(run));
    // Of those that ended only so many are remembered.
    for (auto at = run_order_.begin(); runs_.size() > kMaxRuns && at != run_order_.end();) {
        if (runs_.at(*at)->finished_at) {
            runs_.erase(*at);
            at = run_order_.erase(at);
        } else {
            ++at;
        }
    }
}

std::shared_ptr<BackgroundRun> IsolatedSession::find(const std::string& run) const {
    auto at = runs_.find(run);
    return at == runs_.end() ? nullptr : at->second;
}

bool IsolatedSession::has_running_background() const {
    return std::ranges::any_of(runs_, [](const auto& run) { return !run.second->finished_at; });
}

void IsolatedSession::touch(bool run) {
    if (run) last_run_at_ = now();
    active_at_ = steady_clock::now();
    arm();
}

void IsolatedSession::arm() {
    idle_.reset();
    if (request_.idle_timeout.count() == 0 || busy() || destroyed_ || !idle_action_) return;
    idle_.emplace(executor_, request_.idle_timeout, [weak = weak_from_this()] {
        auto self = weak.lock();
        if (self && !self->busy()) self->idle_action_();
    });
}

Awaitable<void> IsolatedSession::end(std::shared_ptr<IsolatedSession> session) {
    session->destroyed_ = true;
    session->idle_.reset();
    session->idle_action_ = nullptr;
    SessionNamespaces& namespaces = *session->namespaces_;
    namespaces.kill();
    auto gone = std::make_shared<net::Event>(session->executor_);
    namespaces.first().on_exit([gone] { gone->notify(); });
    if (!namespaces.first().status()) co_await gone->wait_for(kEndGrace);
}

}  // namespace opensandbox::agent
