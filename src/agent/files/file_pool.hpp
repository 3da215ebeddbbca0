#pragma once

#include "agent/files/identity.hpp"
#include "agent/files/mount_scope.hpp"
#include "net/task.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <set>

namespace opensandbox::agent {

/// Does blocking file work beside the event loop. Its two threads are started by the first piece of
/// work and ended after a few idle seconds, so that an idle agent has only one thread.
class FilePool {
  public:
    explicit FilePool(asio::any_io_executor executor);
    FilePool(const FilePool&) = delete;
    FilePool& operator=(const FilePool&) = delete;
    ~FilePool();

    /// Waits for work in flight and ends the threads; no work may follow.
    void finish();

    /// Runs `work`, as another user or among other mounts when `identity` says so.
    template <class T>
    Awaitable<Result<T>> run(std::optional<Identity> identity, std::function<Result<T>()> work) {
        Lease lease(*this);
        std::function<Result<T>()> job = [identity = std::move(identity),
                                          work = std::move(work)]() -> Result<T> {
            if (!identity) return work();
            std::optional<MountScope> mounts;
            if (identity->mounts) {
                mounts.emplace(identity->mounts->get());
                if (!mounts->status()) return mounts->status().error();
            }
            IdentityScope scope(*identity);
            if (!scope.status()) return scope.status().error();
            return work();
        };
        co_return co_await net::run_blocking(threads(), std::move(job));
    }

    /// While it exists, `action` is called when the pool is finished: for work that waits for
    /// something else than a disk, and would never be done.
    class FinishHook {
      public:
        FinishHook(FilePool& pool, std::function<void()> action)
            : pool_(pool), action_(std::move(action)) {
            pool_.hooks_.insert(this);
        }
        FinishHook(const FinishHook&) = delete;
        FinishHook& operator=(const FinishHook&) = delete;
        ~FinishHook() { pool_.hooks_.erase(this); }

      private:
        friend class FilePool;
        FilePool& pool_;
        std::function<void()> action_;
    };

  private:
    /// Counts work in flight; the last one to go arms the end of the threads.
    class Lease {
      public:
        explicit Lease(FilePool& pool) : pool_(pool) { ++pool_.in_flight_; }
        Lease(const Lease&) = delete;
        Lease& operator=(const Lease&) = delete;
        ~Lease() {
            if (--pool_.in_flight_ == 0) pool_.idle();
        }

      private:
        FilePool& pool_;
    };

    asio::thread_pool& threads();
    void idle();

    asio::any_io_executor executor_;
    std::unique_ptr<asio::thread_pool> pool_;
    std::unique_ptr<net::Deadline> idle_end_;
    std::size_t in_flight_ = 0;
    std::set<FinishHook*> hooks_;
};

}  // namespace opensandbox::agent
