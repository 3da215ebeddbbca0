#pragma once

#include "http/client.hpp"

#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace opensandbox::http {

/// Kept connections of a client by origin. The one used last is used again first, so that the
/// others grow old and are closed.
class ClientPool : public std::enable_shared_from_this<ClientPool> {
  public:
    ClientPool(asio::any_io_executor executor, ClientOptions options);

    /// A kept connection that still looks alive, or nothing.
    std::unique_ptr<net::Stream> take(const std::string& origin);
    void put(const std::string& origin, std::unique_ptr<net::Stream> stream);
    /// Closes everything and keeps nothing any more.
    void close();
    [[nodiscard]] const ClientOptions& options() const { return options_; }
    [[nodiscard]] const asio::any_io_executor& executor() const { return executor_; }

  private:
    struct Kept {
        std::unique_ptr<net::Stream> stream;
        std::chrono::steady_clock::time_point since;
    };
    /// Closes the oldest connection of another origin, if there is one.
    void drop_one(const std::string& last_used);
    void arm_sweep();
    void sweep();

    asio::any_io_executor executor_;
    ClientOptions options_;
    asio::steady_timer timer_;
    bool sweeping_ = false;
    bool closed_ = false;
    std::size_t count_ = 0;
    std::size_t most_;  ///< over all origins: a sandbox has many ports
    std::map<std::string, std::vector<Kept>> kept_;
};

}  // namespace opensandbox::http
