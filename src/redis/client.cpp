#include "redis/client.hpp"

#include "http/message.hpp"

#include <algorithm>
#include <charconv>

namespace opensandbox::redis {
namespace {

constexpr std::chrono::seconds kConnectTimeout{5};
constexpr std::chrono::seconds kCallTimeout{5};
constexpr std::size_t kMaxReceived = std::size_t{32} << 20;
constexpr std::size_t kPiece = 4096;
constexpr std::size_t kLargestPiece = std::size_t{1} << 20;
constexpr std::int64_t kMaxDatabase = 1'000'000;

Error wrong(std::string_view rule) {
    return {ErrorCode::invalid_argument,
            "the address of Redis " + std::string(rule) +
                "; accepted is redis://[[user]:password@]host[:port][/database]"};
}

template <class Number>
bool read_number(std::string_view text, Number& into) {
    auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), into);
    return failure == std::errc() && end == text.data() + text.size() && !text.empty();
}

Status read_login(std::string_view login, Address& address) {
    auto colon = login.find(':');
    if (colon == std::string_view::npos) return wrong("has a login without ':'");
    auto user = http::percent_decode(login.substr(0, colon));
    auto password = http::percent_decode(login.substr(colon + 1));
    if (!user || !password) return wrong("has a malformed escape in its login");
    address.user = std::move(*user);
    address.password = std::move(*password);
    return {};
}

}  // namespace

Result<Address> parse_url(std::string_view url) {
    constexpr std::string_view kScheme = "redis://";
    if (url.starts_with("rediss://")) {
        return Error(ErrorCode::unsupported,
                     "there is no TLS towards Redis: use redis:// instead of rediss://");
    }
    if (!url.starts_with(kScheme)) return wrong("must begin with redis://");
    std::string_view rest = url.substr(kScheme.size());
    Address address;
    if (auto slash = rest.find('/'); slash != std::string_view::npos) {
        std::string_view database = rest.substr(slash + 1);
        bool valid = database.empty() || read_number(database, address.database);
        if (!valid || address.database < 0 || address.database > kMaxDatabase)
            return wrong("names a database that is no number");
        rest = rest.substr(0, slash);
    }
    if (auto at = rest.rfind('@'); at != std::string_view::npos) {
        if (auto read = read_login(rest.substr(0, at), address); !read) return read.error();
        rest = rest.substr(at + 1);
    }
    auto colon = rest.rfind(':');
    bool bracketed = rest.ends_with(']');
    if (colon != std::string_view::npos && !bracketed) {
        if (!read_number(rest.substr(colon + 1), address.port) || address.port == 0)
            return wrong("has a port that is no number from 1 to 65535");
        rest = rest.substr(0, colon);
    }
    if (rest.starts_with('[') && rest.ends_with(']')) rest = rest.substr(1, rest.size() - 2);
    if (rest.empty()) return wrong("names no host");
    address.host = rest;
    return address;
}

Awaitable<Result<std::unique_ptr<Client>>> Client::connect(asio::any_io_executor executor,
                                                           Address address) {
    auto stream = co_await net::connect_tcp(address.host, address.port, kConnectTimeout);
    if (!stream) co_return stream.error();
    std::unique_ptr<Client> client(new Client(std::move(executor), std::move(stream.value())));
    auto greeted = co_await client->greet(std::move(address));
    if (!greeted) co_return greeted.error();
    co_return client;
}

Awaitable<Status> Client::greet(Address address) {
    if (!address.password.empty()) {
        std::string login = address.user.empty()
                                ? resp::command({"AUTH", address.password})
                                : resp::command({"AUTH", address.user, address.password});
        auto reply = co_await call(std::move(login), kCallTimeout);
        if (!reply) co_return reply.error();
    }
    std::string first = resp::command({"PING"});
    if (address.database != 0) first = resp::command({"SELECT", std::to_string(address.database)});
    auto reply = co_await call(std::move(first), kCallTimeout);
    if (!reply) co_return reply.error();
    co_return Status();
}

Awaitable<Result<resp::Value>> Client::call(std::string command, std::chrono::milliseconds limit) {
    net::Deadline deadline(executor_, limit, [this] { stream_->close(); });
    auto reply = co_await exchange(std::move(command));
    if (deadline.expired() || !reply) failed_ = true;
    if (deadline.expired()) co_return Error(ErrorCode::timeout, "Redis: no reply in time");
    if (!reply) {
        stream_->close();
        co_return reply.error();
    }
    if (reply->kind == resp::Kind::error) {
        co_return Error(ErrorCode::io, "Redis: " + reply->text);
    }
    co_return reply;
}

Awaitable<Result<resp::Value>> Client::exchange(std::string command) {
    auto written = co_await net::write_all(*stream_, command);
    if (!written) co_return written.error();
    std::string piece;
    while (true) {
        auto parsed = resp::parse(received_);
        if (!parsed) co_return parsed.error();
        if (*parsed) {
            received_.erase(0, (*parsed)->used);
            co_return std::move((*parsed)->value);
        }
        if (received_.size() > kMaxReceived) {
            co_return Error(ErrorCode::protocol, "Redis: the reply is too large");
        }
        // As much again as there is: a large reply is not parsed anew for every packet.
        piece.resize(std::clamp(received_.size(), kPiece, kLargestPiece));
        auto count = co_await stream_->read_some(piece);
        if (!count) co_return count.error();
        if (*count == 0) co_return Error(ErrorCode::unavailable, "Redis: the connection ended");
        received_.append(piece, 0, *count);
    }
}

Awaitable<Result<std::optional<std::string>>> Client::pop(std::string key,
                                                          std::chrono::seconds wait) {
    std::string seconds = std::to_string(wait.count());
    auto reply = co_await call(resp::command({"BRPOP", key, seconds}), wait + kCallTimeout);
    if (!reply) co_return reply.error();
    if (reply->kind == resp::Kind::null) co_return std::optional<std::string>();
    bool pair = reply->kind == resp::Kind::array && reply->items.size() == 2 &&
                reply->items[1].kind == resp::Kind::bulk;
    if (!pair) co_return Error(ErrorCode::protocol, "Redis: an unexpected reply to BRPOP");
    co_return std::optional<std::string>(std::move(reply->items[1].text));
}

}  // namespace opensandbox::redis
