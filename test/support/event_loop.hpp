#pragma once

#include "net/task.hpp"

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include <chrono>
#include <exception>
#include <functional>

namespace opensandbox::test_support {

/// Runs a coroutine on an event loop of its own to its end and rethrows what it threw. What the
/// test left running is ended with the loop. A test that hangs fails after 20 seconds.
class Loop {
  public:
    asio::any_io_executor executor() { return context_.get_executor(); }

    void run(std::function<Awaitable<void>()> body) {
        bool ended = false;
        std::exception_ptr failure;
        net::spawn(executor(), guard(std::move(body), ended, failure), "test");
        auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (!ended && std::chrono::steady_clock::now() < end) {
            context_.run_one_for(std::chrono::milliseconds(200));
        }
        if (failure) std::rethrow_exception(failure);
        if (!ended) FAIL("the coroutine did not end");
    }

  private:
    static Awaitable<void> guard(std::function<Awaitable<void>()> body, bool& ended,
                                 std::exception_ptr& failure) {
        try {
            co_await body();
        } catch (...) {
            failure = std::current_exception();
        }
        ended = true;
    }

    asio::io_context context_;
};

}  // namespace opensandbox::test_support
