#pragma once

#include "net/task.hpp"
#include "redis/resp.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace opensandbox::redis {

/// Where a Redis server is and how one logs in.
struct Address {
    std::string host;
    std::uint16_t port = 6379;
    std::string user;
    std::string password;
    std::int64_t database = 0;
};

/// `redis://[[user]:password@]host[:port][/database]`, with %XX in user and password.
/// `unsupported` for rediss://, as there is no TLS towards Redis. Pure.
Result<Address> parse_url(std::string_view dsn);

/// One connection to a Redis server; one command at a time. Errors close it.
class Client {
  public:
    /// Connects, logs in and chooses the database.
    static Awaitable<Result<std::unique_ptr<Client>>> connect(asio::any_io_executor executor,
                                                              Address address);

    /// The reply, an error of the server's among them as `io`. `timeout` when it takes longer.
    Awaitable<Result<resp::Value>> call(std::string command, std::chrono::milliseconds limit);
    /// The oldest element of a list, waited for at most `wait` (whole seconds); empty after that.
    Awaitable<Result<std::optional<std::string>>> pop(std::string key, std::chrono::seconds wait);
    /// Whether it still looks usable: open, and nothing has come that nobody asked for.
    [[nodiscard]] bool usable() const { return !failed_ && stream_->quiet(); }
    /// Ends a call in flight.
    void close() { stream_->close(); }

  private:
    Client(asio::any_io_executor executor, std::unique_ptr<net::Stream> stream)
        : executor_(std::move(executor)), stream_(std::move(stream)) {}
    Awaitable<Result<resp::Value>> exchange(std::string command);
    Awaitable<Status> greet(Address address);

    asio::any_io_executor executor_;
    std::unique_ptr<net::Stream> stream_;
    std::string received_;
    bool failed_ = false;
};

}  // namespace opensandbox::redis
