#include "kube/api/connection.hpp"

#include "net/task.hpp"

#include <optional>
#include <random>

namespace opensandbox::kube {
namespace {

constexpr std::size_t kMaxAnswer = std::size_t{64} * 1024 * 1024;
constexpr std::size_t kMaxFailure = std::size_t{64} * 1024;
constexpr unsigned kMaxTries = 5;
constexpr BackOff::Limits kPauses{BackOff::Pause(50), BackOff::Pause(2'000)};

http::ClientOptions client_options() {
    http::ClientOptions options;
    options.connect_timeout = std::chrono::milliseconds(5'000);
    return options;
}

}  // namespace

/// Ends a call, whatever stage it is in, when its time is up.
struct Connection::Limit {
    Limit(const asio::any_io_executor& executor, std::chrono::milliseconds limit)
        : time(limit),
          until(std::chrono::steady_clock::now() + limit),
          deadline(executor, limit, [this] {
              abort.abort();
              if (answer) answer->abort();
          }) {}

    [[nodiscard]] bool allows(std::chrono::milliseconds pause) const {
        return std::chrono::steady_clock::now() + pause < until;
    }

    std::chrono::milliseconds time;
    std::chrono::steady_clock::time_point until;
    http::AbortHandle abort;
    http::ClientResponse* answer = nullptr;
    net::Deadline deadline;
};

/// How one try went.
struct Connection::Answer {
    Result<std::string> body = Error();
    bool came = false;                                ///< the server said something
    std::optional<std::chrono::milliseconds> repeat;  ///< it is tried again, after so long at least
};

Connection::Connection(asio::any_io_executor executor, Cluster cluster, ConnectionSettings settings)
    : executor_(executor),
      cluster_(std::move(cluster)),
      settings_(std::move(settings)),
      url_(http::parse_url(cluster_.server)),
      credentials_(executor, cluster_),
      client_(executor, client_options()),
      reads_(settings_.reads),
      writes_(settings_.writes),
      seed_(std::random_device()()) {}

Awaitable<Result<std::unique_ptr<http::ClientResponse>>> Connection::send(const Call* call,
                                                                          Limit* limit) {
    if (!url_) co_return url_.error();
    auto access = co_await credentials_.current();
    if (!access) co_return access.error();
    http::ClientRequest request(call->method, url_->path + call->target);
    request.head.fields.set("Accept", "application/json");
    request.head.fields.set("User-Agent", settings_.user_agent);
    if (!access->authorization.empty())
        request.head.fields.set("Authorization", std::move(access->authorization));
    if (!call->content.empty()) request.head.fields.set("Content-Type", call->content_type);
    request.content = call->content;
    if (limit) {
        request.connect_timeout = limit->time;
        request.abort = &limit->abort;
    }
    http::Origin origin = url_->origin;
    origin.tls = access->tls;
    auto response = co_await client_.send(std::move(origin), std::move(request));
    if (!response) co_return response.error().within("API server " + cluster_.server);
    co_return std::move(*response);
}

Awaitable<Connection::Answer> Connection::try_once(const Call* call, Limit* limit) {
    Answer answer;
    auto response = co_await send(call, limit);
    if (!response) {
        answer.body = response.error();
        if (may_repeat(response.error(), call->repeating)) answer.repeat.emplace();
        co_return answer;
    }
    limit->answer = response->get();
    answer.body = co_await http::read_all((*response)->body(), kMaxAnswer);
    limit->answer = nullptr;
    if (!answer.body) {
        if (may_repeat(answer.body.error(), call->repeating)) answer.repeat.emplace();
        co_return answer;
    }
    answer.came = true;
    const http::ResponseHead& head = (*response)->head();
    if (head.status < 300) co_return answer;
    answer.repeat = pause_before_repeat(head, call->repeating);
    answer.body = failure_of(head.status, *answer.body);
    co_return answer;
}

Awaitable<Result<std::string>> Connection::call_in_time(const Call* call, Limit* limit) {
    BackOff pauses(kPauses, seed_++);
    bool renewed = false;
    for (unsigned tries = 1;; ++tries) {
        Answer answer = co_await try_once(call, limit);
        if (answer.came) circuit_.answered();
        if (answer.body) co_return std::move(answer.body);
        if (limit->deadline.expired()) {
            if (!answer.came) circuit_.unanswered(Circuit::Clock::now());
            co_return Error(ErrorCode::timeout, "API server " + cluster_.server +
                                                    ": no whole answer within " +
                                                    std::to_string(limit->time.count()) + " ms");
        }
        const bool stale = answer.body.error().code() == ErrorCode::unauthenticated && !renewed;
        if (stale && credentials_.refused()) {
            renewed = true;
            continue;
        }
        const auto pause = std::max(answer.repeat.value_or(std::chrono::milliseconds(0)),
                                    answer.repeat ? pauses.next() : BackOff::Pause(0));
        if (!answer.repeat || tries == kMaxTries || !limit->allows(pause)) {
            if (!answer.came) circuit_.unanswered(Circuit::Clock::now());
            co_return answer.body.error();
        }
        co_await net::sleep_for(pause);
    }
}

Awaitable<Result<std::string>> Connection::call(Call call) {
    if (!circuit_.allows(Circuit::Clock::now())) {
        co_return Error(ErrorCode::unavailable,
                        "API server " + cluster_.server + ": it does not answer");
    }
    const auto turn = (call.reads() ? reads_ : writes_).take(RateLimit::Clock::now());
    if (turn.count() > 0) co_await net::sleep_for(turn);
    Limit limit(executor_, call.reads() ? settings_.read_limit : settings_.write_limit);
    co_return co_await call_in_time(&call, &limit);
}

Awaitable<Result<std::unique_ptr<http::ClientResponse>>> Connection::open(Call call) {
    // What has begun is not limited; that the server begins is.
    Limit limit(executor_, settings_.read_limit);
    auto response = co_await send(&call, &limit);
    if (!response) {
        if (!limit.deadline.expired()) co_return response.error();
        co_return Error(ErrorCode::timeout, "API server " + cluster_.server +
                                                ": no answer within " +
                                                std::to_string(limit.time.count()) + " ms");
    }
    const http::ResponseHead& head = (*response)->head();
    if (head.status < 300) co_return std::move(*response);
    limit.answer = response->get();
    auto body = co_await http::read_all((*response)->body(), kMaxFailure);
    limit.answer = nullptr;
    Error failure = failure_of(head.status, body ? *body : std::string());
    if (failure.code() == ErrorCode::unauthenticated) credentials_.refused();
    co_return failure;
}

}  // namespace opensandbox::kube
