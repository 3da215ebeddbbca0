#include "kube/lease/leader_election.hpp"

#include "base/log.hpp"

#include <random>

namespace opensandbox::kube {

LeaderElection::LeaderElection(Client& client, ElectionSettings settings, Listener listener)
    : client_(client),
      settings_(std::move(settings)),
      listener_(std::move(listener)),
      wake_(client.connection().executor()),
      pauses_({settings_.retry, settings_.retry}, std::random_device()()) {}

void LeaderElection::stop() {
    stopped_ = true;
    wake_.notify();
}

Awaitable<void> LeaderElection::run() {
    while (!stopped_) {
        Status tried = co_await try_once();
        if (!tried && !leads_)
            log::debug("no leader was elected", {{"error", tried.error().message()}});
        if (!stopped_) co_await wake_.wait_for(pauses_.next());
    }
    if (leads_) co_await give_back();
}

Awaitable<Status> LeaderElection::try_once() {
    const auto began = Clock::now();
    auto object = co_await client_.get(kLeases, settings_.lease);
    if (!object && object.error().code() == ErrorCode::not_found) co_return co_await make();
    if (!object) co_return object.error();
    auto lease = read_lease(*object);
    if (!lease) co_return lease.error();
    observe(*lease);
    const bool ours = lease->holder == settings_.identity;
    const bool held = !lease->holder.empty() && seen_at_ + lease->duration > Clock::now();
    if (!ours && leads_) lost(lease->holder + " leads");
    if (!ours && held) co_return Status();
    Lease wanted = *lease;
    if (!ours) {
        wanted.holder = settings_.identity;
        wanted.acquired = now();
        ++wanted.transitions;
    }
    wanted.duration = settings_.duration;
    wanted.renewed = now();
    Status written = co_await write(std::move(wanted));
    if (!written) co_return written;
    renewed(began);
    co_return Status();
}

Awaitable<Status> LeaderElection::make() {
    Lease lease;
    lease.holder = settings_.identity;
    lease.duration = settings_.duration;
    lease.acquired = lease.renewed = now();
    const auto began = Clock::now();
    auto made = co_await client_.create(kLeases, settings_.lease.name_space,
                                        {{"apiVersion", api_version(kLeases)},
                                         {"kind", kLeases.kind},
                                         {"metadata", json::object{{"name", settings_.lease.name}}},
                                         {"spec", write_lease(lease)}});
    if (!made) co_return made.error();
    if (auto read = read_lease(*made)) observe(*read);
    renewed(began);
    co_return Status();
}

Awaitable<Status> LeaderElection::write(Lease lease) {
    json::object metadata{{"name", settings_.lease.name},
                          {"namespace", settings_.lease.name_space},
                          {"resourceVersion", lease.resource_version}};
    auto written = co_await client_.replace(kLeases, settings_.lease,
                                            {{"apiVersion", api_version(kLeases)},
                                             {"kind", kLeases.kind},
                                             {"metadata", std::move(metadata)},
                                             {"spec", write_lease(lease)}});
    if (!written) co_return written.error();
    auto read = read_lease(*written);
    if (!read) co_return read.error();
    observe(std::move(*read));
    co_return Status();
}

Awaitable<void> LeaderElection::give_back() {
    Lease free = seen_;
    free.holder.clear();
    free.duration = std::chrono::seconds(1);
    free.renewed = now();
    Status written = co_await write(std::move(free));
    lost(written ? std::string("it ends") : written.error().message());
}

void LeaderElection::observe(Lease lease) {
    // Only a change says that its holder lives.
    if (lease.resource_version != seen_.resource_version) seen_at_ = Clock::now();
    seen_ = std::move(lease);
}

/// Others count from when they see it, which is not before we sent it.
void LeaderElection::renewed(Clock::time_point sent) {
    deadline_.emplace(client_.connection().executor(),
                      sent + settings_.renew_deadline - Clock::now(),
                      [this] { lost("it could not be renewed"); });
    if (std::exchange(leads_, true)) return;
    log::info("leads", {{"lease", to_string(settings_.lease)}, {"identity", settings_.identity}});
    listener_(true);
}

void LeaderElection::lost(std::string_view why) {
    deadline_.reset();
    if (!std::exchange(leads_, false)) return;
    log::info("does not lead any more", {{"lease", to_string(settings_.lease)}, {"why", why}});
    listener_(false);
}

}  // namespace opensandbox::kube
