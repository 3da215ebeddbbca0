#pragma once

// What every source begins with: asio and the standard library, nothing of ours, so that it rarely
// changes.

// Boost does not say of what it calls when an assertion does not hold that it ends the process.
namespace boost {
__attribute__((noreturn)) void assertion_failed(const char* expression, const char* function,
                                                const char* file, long line);
__attribute__((noreturn)) void assertion_failed_msg(const char* expression, const char* message,
                                                    const char* function, const char* file,
                                                    long line);
}  // namespace boost

#include <boost/asio.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <boost/system/result.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

/// Nobody calls these: their templates are instantiated here once, which was a third of the time of
/// every source that waits for anything.
namespace opensandbox::precompiled {

inline boost::asio::any_io_executor executor_of(boost::asio::io_context& context) {
    return context.get_executor();
}

inline boost::asio::awaitable<void> wait(boost::asio::ip::tcp::socket socket,
                                         boost::asio::steady_timer timer) {
    constexpr auto kTuple = boost::asio::as_tuple(boost::asio::use_awaitable);
    char byte = 0;
    (void)co_await socket.async_read_some(boost::asio::buffer(&byte, 1), kTuple);
    (void)co_await boost::asio::async_write(socket, boost::asio::buffer(&byte, 1), kTuple);
    (void)co_await timer.async_wait(kTuple);
    (void)co_await boost::asio::this_coro::executor;
}

inline void begin(const boost::asio::any_io_executor& executor, boost::asio::awaitable<void> task) {
    boost::asio::co_spawn(executor, std::move(task), boost::asio::detached);
}

}  // namespace opensandbox::precompiled
