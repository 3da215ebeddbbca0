#pragma once

#include <chrono>
#include <functional>
#include <list>

namespace opensandbox::egress {

/// Ends connections on which something is overdue. Checked by a sweep now and then, so that a busy
/// connection pays for a number and no timer. Not thread-safe.
class IdleWatch {
    struct Entry {
        std::chrono::steady_clock::time_point due;
        std::function<void()> expire;
    };

  public:
    /// One connection's place in the watch; must not outlive it.
    class Lease {
      public:
        Lease(IdleWatch& watch, std::function<void()> expire);
        ~Lease();
        Lease(const Lease&) = delete;
        Lease& operator=(const Lease&) = delete;
        /// `expire` is called, once, when this much time has passed.
        void due_in(std::chrono::milliseconds time);
        /// Nothing is awaited.
        void clear();

      private:
        IdleWatch& watch_;
        std::list<Entry>::iterator entry_;
    };

    /// Calls what has become due.
    void sweep(std::chrono::steady_clock::time_point now);

  private:
    std::list<Entry> entries_;
};

}  // namespace opensandbox::egress
