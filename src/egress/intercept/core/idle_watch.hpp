#pragma once

#include "egress/intercept/core/gate.hpp"

#include <chrono>
#include <functional>
#include <list>
#include <string>

namespace opensandbox::egress {

/// What a connection is open for.
struct WatchedTarget {
    ClientId client;
    Endpoint address;
    std::string host;  ///< a name; empty where there is none
    bool decrypted = false;
};

/// Ends connections on which something is overdue, or which are allowed no more. Checked by a sweep
/// now and then, so that a busy connection pays for a number and no timer. Not thread-safe.
class IdleWatch {
    struct Entry {
        std::chrono::steady_clock::time_point due;
        std::chrono::steady_clock::time_point latest;  ///< it is over, whatever flows
        std::function<void()> expire;
        WatchedTarget target;
    };

  public:
    /// One connection's place in the watch; must not outlive it.
    class Lease {
      public:
        Lease(IdleWatch& watch, WatchedTarget target, std::function<void()> expire);
        ~Lease();
        Lease(const Lease&) = delete;
        Lease& operator=(const Lease&) = delete;
        /// `expire` is called, once, when this much time has passed.
        void due_in(std::chrono::milliseconds time);
        /// Nothing is awaited.
        void clear();
        /// The connection is used for another host now.
        void name(const std::string& host);

      private:
        IdleWatch& watch_;
        std::list<Entry>::iterator entry_;
    };

    /// Calls what has become due.
    void sweep(std::chrono::steady_clock::time_point now);
    /// Calls it for every connection whose target is chosen.
    void expire_where(const std::function<bool(const WatchedTarget& target)>& chosen);

    /// Ends what is chosen: at once where something is awaited, that is between requests; else
    /// after the request, and at the latest after `grace`.
    void retire_where(const std::function<bool(const WatchedTarget& target)>& chosen,
                      std::chrono::milliseconds grace);

  private:
    std::list<Entry> entries_;
};

}  // namespace opensandbox::egress
