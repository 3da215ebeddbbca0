#include "egress/rules/redirection_check.hpp"

#include "egress/rules/ports.hpp"
#include "net/task.hpp"

#include <boost/asio/ip/udp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace opensandbox::egress::rules {

namespace {

using boost::asio::ip::udp;

constexpr std::size_t kHeaderSize = 12;
constexpr std::chrono::milliseconds kAskAgain{500};

/// Whether the redirection works for this address, as far as there is a way to it.
enum class Outcome : std::uint8_t { answered, silent, no_way };

/// A question for the address of a name that no server has.
std::vector<std::uint8_t> make_query(std::uint16_t id) {
    std::vector<std::uint8_t> query{static_cast<std::uint8_t>(id >> 8),
                                    static_cast<std::uint8_t>(id & 0xff),
                                    1,
                                    0,
                                    0,
                                    1,
                                    0,
                                    0,
                                    0,
                                    0,
                                    0,
                                    0};
    for (const std::string_view label : {"redirection", "opensandbox", "invalid"}) {
        query.push_back(static_cast<std::uint8_t>(label.size()));
        query.insert(query.end(), label.begin(), label.end());
    }
    for (const std::uint8_t byte : {0, 0, 1, 0, 1})
        query.push_back(byte);
    return query;
}

/// A datagram that is lost, say to an address that the kernel still looks for twins of, is no
/// proof: it is sent again until something comes back or `patience` is over.
Awaitable<Outcome> ask(std::string address, std::chrono::milliseconds patience) {
    const auto executor = co_await boost::asio::this_coro::executor;
    boost::system::error_code failed;
    const udp::endpoint server(boost::asio::ip::make_address(address), kDnsPort);
    udp::socket socket(executor);
    socket.open(server.protocol(), failed);
    if (!failed) socket.connect(server, failed);
    if (failed) co_return Outcome::no_way;
    const auto query = make_query(0x6f73);
    std::array<std::uint8_t, 1232> answer{};
    std::size_t size = 0;
    const auto end = std::chrono::steady_clock::now() + patience;
    do {
        socket.send(boost::asio::buffer(query), 0, failed);
        if (failed == boost::asio::error::network_unreachable) co_return Outcome::no_way;
        net::Deadline deadline(executor, std::min(patience, kAskAgain), [&socket] {
            boost::system::error_code ignored;
            socket.cancel(ignored);
        });
        size = co_await socket.async_receive(
            boost::asio::buffer(answer),
            boost::asio::redirect_error(boost::asio::use_awaitable, failed));
    } while (failed == boost::asio::error::operation_aborted &&
             std::chrono::steady_clock::now() < end);
    constexpr std::uint8_t kIsResponse = 0x80;
    const bool ours = !failed && size >= kHeaderSize && answer[0] == query[0] &&
                      answer[1] == query[1] && (answer[2] & kIsResponse) != 0;
    co_return ours ? Outcome::answered : Outcome::silent;
}

}  // namespace

Awaitable<Status> verify_redirection(std::chrono::milliseconds patience) {
    for (const std::string address : {"127.0.0.53", "::1", "192.0.2.53", "2001:db8::53"}) {
        const auto outcome = co_await ask(address, patience);
        if (outcome != Outcome::silent) continue;
        co_return Error(ErrorCode::unavailable,
                        "queries for names to " + address + " do not reach the sidecar's resolver");
    }
    co_return Status();
}

}  // namespace opensandbox::egress::rules
