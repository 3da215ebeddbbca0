#include "opensandbox/snapshots.hpp"

#include "net/task.hpp"
#include "sdk/transport.hpp"
#include "sdk/wire.hpp"

namespace opensandbox::sdk {

namespace {

constexpr std::chrono::milliseconds kFirstLook{5};
constexpr std::chrono::milliseconds kLongestLook{500};

std::string snapshot_target(std::string_view id, std::string_view rest = "") {
    return "/snapshots/" + http::percent_encode(id) + std::string(rest);
}

std::optional<Error> refuse_empty_snapshot(std::string_view what, std::string_view id) {
    if (!id.empty()) return std::nullopt;
    return Error(ErrorCode::invalid_argument, "the " + std::string(what) + " id is empty");
}

}  // namespace

Awaitable<Result<SnapshotInfo>> Snapshots::create(std::string sandbox_id,
                                                  std::optional<std::string> name) const {
    if (auto refused = refuse_empty_snapshot("sandbox", sandbox_id)) co_return *refused;
    Transport& transport = *connection_.transport();
    Call call("POST", "/sandboxes/" + http::percent_encode(sandbox_id) + "/snapshots",
              wire::encode_snapshot(name));
    auto reply = co_await transport.exchange(transport.lifecycle(), std::move(call));
    if (!reply) co_return reply.error();
    co_return wire::decode_snapshot(reply->body);
}

Awaitable<Result<SnapshotInfo>> Snapshots::get(std::string id) const {
    if (auto refused = refuse_empty_snapshot("snapshot", id)) co_return *refused;
    Transport& transport = *connection_.transport();
    Call call("GET", snapshot_target(id));
    auto reply = co_await transport.exchange(transport.lifecycle(), std::move(call));
    if (!reply) co_return reply.error();
    co_return wire::decode_snapshot(reply->body);
}

Awaitable<Result<SnapshotInfo>> Snapshots::wait(std::string id,
                                                std::chrono::milliseconds limit) const {
    const auto until = std::chrono::steady_clock::now() + limit;
    auto pause = kFirstLook;
    for (;;) {
        auto info = co_await get(id);
        if (!info || info->state != "Creating") co_return info;
        if (std::chrono::steady_clock::now() >= until) {
            co_return Error(ErrorCode::timeout, "snapshot " + id + " is still being made");
        }
        co_await net::sleep_for(pause);
        pause = std::min(pause * 2, kLongestLook);
    }
}

Awaitable<Result<SnapshotPage>> Snapshots::list(SnapshotFilter filter) const {
    Transport& transport = *connection_.transport();
    std::vector<std::pair<std::string, std::string>> query;
    if (filter.sandbox_id) query.emplace_back("sandboxId", *filter.sandbox_id);
    if (filter.name) query.emplace_back("name", *filter.name);
    for (const auto& state : filter.states)
        query.emplace_back("state", state);
    if (filter.page) query.emplace_back("page", std::to_string(*filter.page));
    if (filter.page_size) query.emplace_back("pageSize", std::to_string(*filter.page_size));
    const std::string text = encode_query(query);
    Call call("GET", text.empty() ? std::string("/snapshots") : "/snapshots?" + text);
    auto reply = co_await transport.exchange(transport.lifecycle(), std::move(call));
    if (!reply) co_return reply.error();
    co_return wire::decode_snapshot_page(reply->body);
}

Awaitable<Status> Snapshots::remove(std::string id) const {
    if (auto refused = refuse_empty_snapshot("snapshot", id)) co_return *refused;
    Transport& transport = *connection_.transport();
    Call call("DELETE", snapshot_target(id));
    auto reply = co_await transport.exchange(transport.lifecycle(), std::move(call));
    if (!reply) co_return reply.error();
    co_return Status();
}

Awaitable<Result<ImageInfo>> Snapshots::make_image(std::string id, std::string reference,
                                                   ImageConfigChange change) const {
    if (auto refused = refuse_empty_snapshot("snapshot", id)) co_return *refused;
    Transport& transport = *connection_.transport();
    Call call("POST", snapshot_target(id, "/image"),
              wire::encode_named_image("", reference, change));
    // All of the snapshot's files are read.
    auto reply = co_await transport.exchange_once(transport.lifecycle(), std::move(call),
                                                  std::chrono::milliseconds(0));
    if (!reply) co_return reply.error();
    co_return wire::decode_image(reply->body);
}

}  // namespace opensandbox::sdk
