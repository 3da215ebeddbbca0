#pragma once

#include "http/client.hpp"
#include "support/http_fixture.hpp"

#include <optional>
#include <string>

namespace opensandbox::http::test {

/// What came back for a request, body read to its end.
struct Answer {
    int status = 0;
    std::string body;
    std::optional<Error> failure;
};

inline Awaitable<Answer> fetch(Client& client, Origin origin, ClientRequest request) {
    Answer answer;
    auto response = co_await client.send(origin, std::move(request));
    if (!response) {
        answer.failure = response.error();
        co_return answer;
    }
    answer.status = (*response)->head().status;
    auto body = co_await read_all((*response)->body(), 100 << 20);
    if (body) answer.body = *body;
    if (!body) answer.failure = body.error();
    co_return answer;
}

inline Origin local(std::uint16_t port) {
    return {"127.0.0.1", port};
}

/// A body that gives its text and then waits for ever.
struct StuckBody final : BodyReader {
    explicit StuckBody(asio::any_io_executor executor) : never(std::move(executor)) {}
    Awaitable<Result<std::size_t>> read_some(std::span<char> into) override {
        if (given) {
            co_await never.wait();
            co_return Error(ErrorCode::cancelled, "stopped");
        }
        given = true;
        into[0] = 'x';
        co_return 1;
    }
    std::optional<std::uint64_t> content_length() const override { return std::nullopt; }
    net::Event never;
    bool given = false;
};

}  // namespace opensandbox::http::test
