#include "egress/policy/policy_store.hpp"

#include "base/log.hpp"

#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <utility>

namespace opensandbox::egress {

namespace fs = std::filesystem;

Result<LoadedPolicy> load_policy(PolicyStoreSettings settings) {
    LoadedPolicy loaded;
    // The stamp first: a file that changes meanwhile is read once more.
    loaded.stamp = stamp_overlay(settings.overlay_directory);
    Result<Overlay> overlay = read_overlay(settings.overlay_directory);
    if (!overlay) return overlay.error();
    Result<InitialPolicy> initial = initial_policy(settings.file.string(), settings.rules);
    if (!initial) return initial.error();
    // Few words may make many rules of ports; else the contract limits changes only.
    if (std::ranges::any_of(initial->policy.rules,
                            [](const PolicyRule& rule) { return !rule.ports.empty(); })) {
        Status counted = check_rule_count(initial->policy, settings.max_rules);
        if (!counted) return counted.error();
    }
    if (!settings.filtering) {
        if (Status judged = check_without_filter(initial->policy); !judged) return judged.error();
    }
    loaded.overlay = std::move(*overlay);
    loaded.initial = std::move(*initial);
    loaded.settings = std::move(settings);
    return loaded;
}

PolicyStore::PolicyStore(asio::any_io_executor executor, asio::thread_pool& files,
                         LoadedPolicy loaded)
    : files_(files),
      settings_(std::move(loaded.settings)),
      overlay_(std::move(loaded.overlay)),
      stamp_(loaded.stamp),
      current_(std::make_shared<const EffectivePolicy>(overlay_, std::move(loaded.initial.policy))),
      turns_(std::move(executor)) {}

Awaitable<Result<PolicyPtr>> PolicyStore::change(Edit edit) {
    const SerialTurns::Turn turn = co_await turns_.take();
    Result<std::optional<Policy>> edited = edit(current_->user());
    if (!edited) co_return edited.error();
    if (!edited->has_value()) co_return current_;
    if (Status counted = check_rule_count(**edited, settings_.max_rules); !counted) {
        co_return counted.error();
    }
    if (!settings_.filtering) {
        if (Status judged = check_without_filter(**edited); !judged) co_return judged.error();
    }
    auto next = std::make_shared<const EffectivePolicy>(overlay_, std::move(**edited));
    const Status done = co_await put_in_force(next, true);
    if (!done) co_return done.error();
    co_return current_;
}

Awaitable<Status> PolicyStore::put_in_force(PolicyPtr next, bool persist) {
    if (followers_.covered) {
        if (Status covered = followers_.covered(*next); !covered) co_return covered;
    }
    const bool to_file = persist && !settings_.file.empty();
    bool existed = false;
    if (to_file) {
        existed = co_await file_exists();
        const Status written = co_await write_file(next);
        if (!written) {
            co_await restore_file(existed);
            log::error("egress policy could not be kept",
                       {{"opensandbox.event", "egress.update_failed"},
                        {"error", written.error().message()}});
            co_return written.error().within("persist policy");
        }
    }
    if (followers_.enforce) {
        if (const Status enforced = followers_.enforce(next); !enforced) {
            const Status back = followers_.enforce(current_);
            // Addresses may have been taken from names meanwhile: they are learned again.
            ++generation_;
            if (!back) {
                log::error("the packet filter could not be taken back",
                           {{"error", back.error().message()}});
            }
            if (to_file) co_await restore_file(existed);
            log::error("egress policy could not be put in force",
                       {{"opensandbox.event", "egress.update_failed"},
                        {"error", enforced.error().message()}});
            co_return enforced.error().within("apply policy");
        }
    }
    const PolicyPtr before = std::exchange(current_, std::move(next));
    ++generation_;
    if (followers_.published) followers_.published(before, current_);
    co_return Status();
}

Awaitable<bool> PolicyStore::file_exists() {
    std::function<bool()> work = [file = settings_.file] {
        std::error_code ignored;
        return fs::exists(file, ignored);
    };
    co_return co_await net::run_blocking(files_, std::move(work));
}

Awaitable<Status> PolicyStore::write_file(PolicyPtr policy) {
    std::function<Status()> work = [file = settings_.file, policy = std::move(policy)] {
        return write_policy(file, policy->user());
    };
    co_return co_await net::run_blocking(files_, std::move(work));
}

Awaitable<void> PolicyStore::restore_file(bool existed) {
    Status restored;
    if (existed) {
        restored = co_await write_file(current_);
    } else {
        std::function<Status()> work = [file = settings_.file]() -> Status {
            std::error_code failed;
            fs::remove(file, failed);
            if (failed) return Error(ErrorCode::io, failed.message());
            return {};
        };
        restored = co_await net::run_blocking(files_, std::move(work));
    }
    if (!restored) {
        log::error("the policy file could not be restored",
                   {{"error", restored.error().message()}});
    }
}

Awaitable<Status> PolicyStore::reload_overlay() {
    const SerialTurns::Turn turn = co_await turns_.take();
    struct Read {
        OverlayStamp stamp;
        std::optional<Result<Overlay>> overlay;
    };
    std::function<Read()> work = [directory = settings_.overlay_directory, known = stamp_] {
        Read read;
        read.stamp = stamp_overlay(directory);
        if (!(read.stamp == known)) read.overlay.emplace(read_overlay(directory));
        return read;
    };
    Read read = co_await net::run_blocking(files_, std::move(work));
    if (!read.overlay) co_return Status();
    if (!*read.overlay) {
        stamp_ = read.stamp;
        co_return read.overlay->error();
    }
    auto next = std::make_shared<const EffectivePolicy>(**read.overlay, current_->user());
    const Status done = co_await put_in_force(std::move(next), false);
    // What others stand in the way of is tried again.
    if (!done) co_return done.error();
    stamp_ = read.stamp;
    overlay_ = std::move(**read.overlay);
    co_return Status();
}

Awaitable<void> watch_overlay(PolicyStore& store, std::chrono::milliseconds interval) {
    while (true) {
        co_await net::sleep_for(interval);
        const auto cancelled = (co_await asio::this_coro::cancellation_state).cancelled();
        if (cancelled != asio::cancellation_type::none) co_return;
        const Status reloaded = co_await store.reload_overlay();
        if (!reloaded) {
            log::warn("the overlay's rules stay as they were",
                      {{"opensandbox.event", "egress.update_failed"},
                       {"error", reloaded.error().message()}});
        }
    }
}

}  // namespace opensandbox::egress
