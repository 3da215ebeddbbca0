#include "opensandbox/sandbox.hpp"

#include "base/identifier.hpp"
#include "net/task.hpp"
#include "sdk/transport.hpp"
#include "sdk/wire.hpp"

namespace opensandbox::sdk {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint16_t kAgentPort = 44772;
constexpr std::chrono::milliseconds kFirstPause{5};
constexpr std::chrono::milliseconds kLongestPause{200};

bool refused_for_good(const Error& error) {
    return error.code() == ErrorCode::unauthenticated ||
           error.code() == ErrorCode::permission_denied;
}

/// Kubernetes has no address for a pod yet; all else is final (lifecycle 10.2).
bool endpoint_may_come(const Error& error) {
    return error.wire_code() == "KUBERNETES::POD_IP_NOT_AVAILABLE";
}

/// Pauses that double, bounded by a deadline.
class Backoff {
  public:
    explicit Backoff(std::chrono::milliseconds limit) : deadline_(Clock::now() + limit) {}
    [[nodiscard]] bool over() const { return Clock::now() >= deadline_; }
    [[nodiscard]] std::chrono::milliseconds remaining() const {
        auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now());
        return std::max(left, std::chrono::milliseconds(1));
    }
    Awaitable<void> pause() {
        co_await net::sleep_for(std::min(pause_, remaining()));
        pause_ = std::min(pause_ * 2, kLongestPause);
    }

  private:
    Clock::time_point deadline_;
    std::chrono::milliseconds pause_ = kFirstPause;
};

Awaitable<Result<Route>> find_agent(Connection connection, std::string id, Backoff& backoff) {
    for (;;) {
        Sandboxes sandboxes(connection);
        auto endpoint = co_await sandboxes.endpoint(id, kAgentPort);
        if (endpoint) {
            http::Fields headers;
            for (const auto& [name, value] : endpoint->headers)
                headers.set(name, value);
            co_return connection.transport()->route_to(endpoint->endpoint, headers);
        }
        if (!endpoint_may_come(endpoint.error()) || backoff.over()) co_return endpoint.error();
        co_await backoff.pause();
    }
}

Awaitable<Status> wait_until_ready(Transport& transport, std::shared_ptr<const Route> agent,
                                   Backoff& backoff, std::chrono::milliseconds limit) {
    for (;;) {
        Call call("GET", "/ping");
        auto reply = co_await transport.exchange_once(agent, std::move(call), backoff.remaining());
        if (reply) co_return Status();
        if (refused_for_good(reply.error())) co_return reply.error();
        if (backoff.over()) {
            co_return Error(ErrorCode::timeout, "the sandbox's agent did not answer within " +
                                                    std::to_string(limit.count()) +
                                                    " ms; last: " + reply.error().message());
        }
        co_await backoff.pause();
    }
}

}  // namespace

Sandbox::Sandbox(Connection connection, std::string id, std::shared_ptr<const Route> agent)
    : connection_(std::move(connection)), id_(std::move(id)), agent_(std::move(agent)) {}

namespace {

constexpr std::chrono::minutes kPullPatience{30};

/// An image that the server has to pull first may take longer than a request: then the same request
/// is sent again, which by its key joins the create that is under way.
Awaitable<Result<Reply>> send_create(Transport& transport, Call call, bool may_pull) {
    const auto end = std::chrono::steady_clock::now() + kPullPatience;
    while (true) {
        Call copy = call;
        auto reply = co_await transport.exchange(transport.lifecycle(), std::move(copy));
        const bool late = !reply && reply.error().code() == ErrorCode::timeout;
        if (!late || !may_pull || std::chrono::steady_clock::now() > end) co_return reply;
        // A server that answers nothing else either is not busy with a pull.
        Call question("GET", "/sandboxes?pageSize=1");
        auto alive = co_await transport.exchange(transport.lifecycle(), std::move(question));
        if (!alive) co_return reply;
    }
}

/// Deletes a sandbox that cannot be handed out; what is to be said of it.
Awaitable<Error> give_up(Connection connection, std::string id, Error why) {
    Sandboxes sandboxes(std::move(connection));
    Status undone = co_await sandboxes.kill(id);
    if (!undone && undone.error().code() != ErrorCode::not_found) {
        co_return why.within("sandbox " + id +
                             " (could not be deleted again: " + undone.error().message() + ")");
    }
    co_return why.within("sandbox " + id);
}

}  // namespace

Awaitable<Result<Sandbox>> Sandbox::create(Connection connection, CreateOptions options) {
    auto body = wire::encode_create(options);
    if (!body) co_return body.error();
    Transport& transport = *connection.transport();
    Call call("POST", "/sandboxes", std::move(*body));
    call.fields.set("Idempotency-Key", new_uuid());
    const bool may_pull = !options.image.empty() && options.image != "host";
    auto reply = co_await send_create(transport, std::move(call), may_pull);
    if (!reply) co_return reply.error();
    auto id = wire::decode_created_id(reply->body);
    if (!id) co_return id.error();
    const std::string wanted = options.credential_proxy && options.request_body.empty()
                                   ? options.interception_mode
                                   : std::string();
    if (Status same = wire::check_interception_mode(wanted, reply->body); !same) {
        co_return co_await give_up(connection, *id, same.error());
    }

    ConnectOptions ready;
    ready.skip_health_check = options.skip_health_check;
    ready.ready_timeout = options.ready_timeout;
    auto sandbox = co_await connect(connection, *id, std::move(ready));
    if (!sandbox) co_return co_await give_up(connection, *id, sandbox.error());
    co_return sandbox;
}

Awaitable<Result<Sandbox>> Sandbox::connect(Connection connection, std::string id,
                                            ConnectOptions options) {
    Backoff backoff(options.ready_timeout);
    auto route = co_await find_agent(connection, id, backoff);
    if (!route) co_return route.error();
    auto agent = std::make_shared<const Route>(std::move(*route));
    if (!options.skip_health_check) {
        Status ready = co_await wait_until_ready(*connection.transport(), agent, backoff,
                                                 options.ready_timeout);
        if (!ready) co_return ready.error();
    }
    co_return Sandbox(connection, std::move(id), std::move(agent));
}

Commands Sandbox::commands() const {
    return {connection_.transport(), agent_};
}

Files Sandbox::files() const {
    return {connection_.transport(), agent_};
}

Awaitable<Result<SandboxInfo>> Sandbox::info() const {
    Sandboxes sandboxes(connection_);
    co_return co_await sandboxes.get(id_);
}

Awaitable<Result<TimePoint>> Sandbox::renew(std::chrono::seconds timeout) const {
    Sandboxes sandboxes(connection_);
    co_return co_await sandboxes.renew(id_, timeout);
}

Awaitable<Result<Endpoint>> Sandbox::endpoint(std::uint16_t port) const {
    Sandboxes sandboxes(connection_);
    co_return co_await sandboxes.endpoint(id_, port);
}

Awaitable<Result<SandboxInfo>> Sandbox::patch_metadata(
    std::map<std::string, std::optional<std::string>> changes) const {
    Sandboxes sandboxes(connection_);
    co_return co_await sandboxes.patch_metadata(id_, std::move(changes));
}

Awaitable<Status> Sandbox::kill() const {
    Sandboxes sandboxes(connection_);
    co_return co_await sandboxes.kill(id_);
}

Awaitable<Result<bool>> Sandbox::is_healthy() const {
    Transport& transport = *connection_.transport();
    Call call("GET", "/ping");
    auto reply = co_await transport.exchange_once(agent_, std::move(call),
                                                  transport.config().request_timeout);
    if (!reply && refused_for_good(reply.error())) co_return reply.error();
    co_return reply.has_value();
}

}  // namespace opensandbox::sdk
