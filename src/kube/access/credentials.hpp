#pragma once

#include "base/clock.hpp"
#include "kube/access/cluster.hpp"
#include "kube/access/plugin_answer.hpp"
#include "net/latch.hpp"
#include "net/task.hpp"

#include <boost/asio/thread_pool.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace opensandbox::kube {

/// What a request to the API server goes with.
struct Access {
    std::string authorization;            ///< of that header; empty: without it
    std::shared_ptr<net::TlsClient> tls;  ///< null: http://
};

/// Credentials that change: a token in a file is read again each minute; a plugin is asked again a
/// minute before its answer expires, at the end of one that lives shorter, and after a refusal, at
/// most once in ten seconds. For one event loop; calls must have ended before it is destroyed,
/// which waits for a plugin that still runs.
class Credentials {
  public:
    /// `clock` for tests.
    Credentials(asio::any_io_executor executor, Cluster cluster,
                std::function<Timestamp()> clock = now);
    Credentials(const Credentials&) = delete;
    Credentials& operator=(const Credentials&) = delete;

    /// Callers at the same time wait for one renewal. Errors name the file, or the plugin with how
    /// to install it. One that fails though it did not before leaves what was known, with a
    /// warning, until that has expired.
    Awaitable<Result<Access>> current();
    /// The API server did not accept what current() gave: the next call renews it, a plugin's when
    /// ten seconds have passed since it answered. False: the next call would give the same.
    bool refused();

  private:
    Awaitable<Status> read_token();
    Awaitable<Status> ask_plugin();
    void present(PluginAnswer answer);
    [[nodiscard]] bool is_due() const { return due_ && clock_() >= *due_; }
    [[nodiscard]] bool has_expired() const { return expires_at_ && clock_() >= *expires_at_; }

    asio::any_io_executor executor_;
    Cluster cluster_;
    std::function<Timestamp()> clock_;
    std::string token_;
    std::shared_ptr<net::TlsClient> tls_;
    std::optional<Timestamp> due_;         ///< renewed from then on; empty: when it is refused
    std::optional<Timestamp> expires_at_;  ///< what is known; empty: never
    Timestamp renewed_;                    ///< when the last renewal ended
    Status outcome_;                       ///< of that
    /// Held by who renews; others wait for it.
    std::shared_ptr<net::Latch> renewing_;
    std::optional<asio::thread_pool> thread_;  ///< since something blocks
};

}  // namespace opensandbox::kube
