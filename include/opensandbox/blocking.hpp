#pragma once

#include "opensandbox/connection.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <exception>
#include <optional>
#include <utility>

namespace opensandbox::sdk {

/// For programs without an event loop of their own: runs one operation at a time and waits for it.
/// Everything made from its connections must be used through the same loop, on one thread.
class EventLoop {
  public:
    EventLoop() : context_(1) {}

    /// A connection on this loop.
    Result<Connection> connect(ConnectionConfig config) {
        return Connection::open(context_.get_executor(), std::move(config));
    }
    /// The server found by ConnectionConfig::discover().
    Result<Connection> connect() {
        auto config = ConnectionConfig::discover();
        if (!config) return config.error();
        return connect(std::move(*config));
    }

    /// Runs until the operation is done and returns what it returned.
    template <class T>
    T wait(boost::asio::awaitable<T> operation) {
        std::optional<T> outcome;
        std::exception_ptr thrown;
        bool done = false;
        auto keep = [](boost::asio::awaitable<T> from,
                       std::optional<T>& into) -> boost::asio::awaitable<void> {
            into.emplace(co_await std::move(from));
        };
        boost::asio::co_spawn(context_, keep(std::move(operation), outcome),
                              [&](std::exception_ptr exception) {
                                  thrown = std::move(exception);
                                  done = true;
                              });
        context_.restart();
        while (!done && context_.run_one() > 0) {
        }
        if (thrown) std::rethrow_exception(thrown);
        return std::move(*outcome);
    }

    boost::asio::io_context& context() { return context_; }

  private:
    boost::asio::io_context context_;
};

}  // namespace opensandbox::sdk
