#include "base/clock.hpp"
#include "opensandbox/sandbox.hpp"
#include "sdk/transport.hpp"
#include "sdk/wire.hpp"

namespace opensandbox::sdk {

namespace {

std::string target_of(std::string_view id, std::string_view rest = "") {
    return "/sandboxes/" + http::percent_encode(id) + std::string(rest);
}

/// An id is part of a path: an empty one would name the collection.
std::optional<Error> refuse_empty(std::string_view id) {
    if (!id.empty()) return std::nullopt;
    return Error(ErrorCode::invalid_argument, "the sandbox id is empty");
}

}  // namespace

Awaitable<Result<SandboxInfo>> Sandboxes::get(std::string id) const {
    if (auto refused = refuse_empty(id)) co_return *refused;
    Transport& transport = *connection_.transport();
    Call call("GET", target_of(id));
    auto reply = co_await transport.exchange(transport.lifecycle(), std::move(call));
    if (!reply) co_return reply.error();
    co_return wire::decode_sandbox(reply->body);
}

Awaitable<Result<SandboxPage>> Sandboxes::list(ListFilter filter) const {
    Transport& transport = *connection_.transport();
    std::vector<std::pair<std::string, std::string>> query;
    for (const auto& state : filter.states)
        query.emplace_back("state", state);
    if (!filter.metadata.empty()) {
        query.emplace_back("metadata", wire::encode_metadata_filter(filter.metadata));
    }
    if (filter.page) query.emplace_back("page", std::to_string(*filter.page));
    if (filter.page_size) query.emplace_back("pageSize", std::to_string(*filter.page_size));
    const std::string text = encode_query(query);
    Call call("GET", text.empty() ? std::string("/sandboxes") : "/sandboxes?" + text);
    auto reply = co_await transport.exchange(transport.lifecycle(), std::move(call));
    if (!reply) co_return reply.error();
    co_return wire::decode_sandbox_page(reply->body);
}

Awaitable<Status> Sandboxes::kill(std::string id) const {
    if (auto refused = refuse_empty(id)) co_return *refused;
    Transport& transport = *connection_.transport();
    Call call("DELETE", target_of(id));
    auto reply = co_await transport.exchange(transport.lifecycle(), std::move(call));
    if (!reply) co_return reply.error();
    co_return Status();
}

Awaitable<Status> Sandboxes::pause(std::string id) const {
    if (auto refused = refuse_empty(id)) co_return *refused;
    Transport& transport = *connection_.transport();
    Call call("POST", target_of(id, "/pause"));
    auto reply = co_await transport.exchange(transport.lifecycle(), std::move(call));
    if (!reply) co_return reply.error();
    co_return Status();
}

Awaitable<Status> Sandboxes::resume(std::string id) const {
    if (auto refused = refuse_empty(id)) co_return *refused;
    Transport& transport = *connection_.transport();
    Call call("POST", target_of(id, "/resume"));
    auto reply = co_await transport.exchange(transport.lifecycle(), std::move(call));
    if (!reply) co_return reply.error();
    co_return Status();
}

Awaitable<Result<std::vector<SandboxInfo>>> Sandboxes::fork(std::string id,
                                                            ForkOptions options) const {
    if (auto refused = refuse_empty(id)) co_return *refused;
    Transport& transport = *connection_.transport();
    Call call("POST", target_of(id, "/fork"), wire::encode_fork(options));
    // A large file system takes its time where it cannot be shared.
    auto reply = co_await transport.exchange_once(transport.lifecycle(), std::move(call),
                                                  std::chrono::milliseconds(0));
    if (!reply) co_return reply.error();
    co_return wire::decode_forks(reply->body);
}

Awaitable<Result<TimePoint>> Sandboxes::renew(std::string id, std::chrono::seconds timeout) const {
    if (auto refused = refuse_empty(id)) co_return *refused;
    Transport& transport = *connection_.transport();
    Call call("POST", target_of(id, "/renew-expiration"), wire::encode_expiry(now() + timeout));
    auto reply = co_await transport.exchange(transport.lifecycle(), std::move(call));
    if (!reply) co_return reply.error();
    co_return wire::decode_expiry(reply->body);
}

Awaitable<Result<Endpoint>> Sandboxes::endpoint(std::string id, std::uint16_t port) const {
    if (auto refused = refuse_empty(id)) co_return *refused;
    Transport& transport = *connection_.transport();
    const std::string proxy = transport.config().use_server_proxy ? "true" : "false";
    Call call("GET",
              target_of(id, "/endpoints/" + std::to_string(port) + "?use_server_proxy=" + proxy));
    auto reply = co_await transport.exchange(transport.lifecycle(), std::move(call));
    if (!reply) co_return reply.error();
    auto endpoint = wire::decode_endpoint(reply->body);
    if (endpoint) {
        if (auto origin = reply->fields.get("OPEN-SANDBOX-ORIGIN")) endpoint->origin = *origin;
    }
    co_return endpoint;
}

Awaitable<Result<SandboxInfo>> Sandboxes::patch_metadata(
    std::string id, std::map<std::string, std::optional<std::string>> changes) const {
    if (auto refused = refuse_empty(id)) co_return *refused;
    Transport& transport = *connection_.transport();
    Call call("PATCH", target_of(id, "/metadata"), wire::encode_metadata_patch(changes));
    auto reply = co_await transport.exchange(transport.lifecycle(), std::move(call));
    if (!reply) co_return reply.error();
    co_return wire::decode_sandbox(reply->body);
}

}  // namespace opensandbox::sdk
