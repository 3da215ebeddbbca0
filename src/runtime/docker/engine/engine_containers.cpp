#include "net/task.hpp"
#include "runtime/docker/engine/decode.hpp"
#include "runtime/docker/engine/document_reader.hpp"
#include "runtime/docker/engine/engine.hpp"
#include "runtime/docker/engine/engine_state.hpp"

#include <algorithm>

namespace opensandbox::runtime::docker {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

EngineCall container_call(std::string method, const std::string& id, std::string_view action) {
    return {std::move(method), "/containers/" + path_part(id) + std::string(action)};
}

}  // namespace

Awaitable<Result<CreatedContainer>> Engine::create_container(std::string name, json::object body,
                                                             std::string platform) {
    EngineCall call("POST", "/containers/create");
    call.with("name", name);
    if (!platform.empty()) {
        auto version = co_await state_->transport.api_version();
        if (!version) co_return version.error();
        if (*version < ApiVersion(1, 41)) {
            co_return state_->transport.named(
                Error(ErrorCode::unsupported,
                      "takes no platform for a container: it speaks no API version 1.41"));
        }
        call.with("platform", platform);
    }
    call.content_type = "application/json";
    call.content = json::serialize(body);
    auto document = co_await state_->transport.fetch(std::move(call));
    if (!document) co_return document.error();
    co_return state_->named(decode_created(*document));
}

Awaitable<Status> Engine::start_container(std::string id) {
    EngineCall call = container_call("POST", id, "/start");
    call.accepted = {304};
    co_return co_await state_->run(std::move(call));
}

Awaitable<Status> Engine::stop_container(std::string id, std::chrono::seconds grace) {
    EngineCall call = container_call("POST", id, "/stop");
    call.with("t", std::to_string(grace.count()));
    call.accepted = {304};
    call.limit = state_->transport.options().call_timeout + grace;
    co_return co_await state_->run(std::move(call));
}

Awaitable<Status> Engine::kill_container(std::string id, std::string signal) {
    EngineCall call = container_call("POST", id, "/kill");
    call.with("signal", signal);
    co_return co_await state_->run(std::move(call));
}

Awaitable<Status> Engine::pause_container(std::string id) {
    EngineCall call = container_call("POST", id, "/pause");
    co_return co_await state_->run(std::move(call));
}

Awaitable<Status> Engine::unpause_container(std::string id) {
    EngineCall call = container_call("POST", id, "/unpause");
    co_return co_await state_->run(std::move(call));
}

Awaitable<Status> Engine::remove_container(std::string id, bool force, bool volumes) {
    EngineCall call = container_call("DELETE", id, "");
    call.with("force", force ? "1" : "0").with("v", volumes ? "1" : "0");
    auto removed = co_await state_->run_unless_missing(std::move(call));
    if (removed) co_return removed;
    Error error = removed.error();
    bool underway = error.code() == ErrorCode::conflict &&
                    error.message().find("already in progress") != std::string::npos;
    if (!underway) co_return error;
    auto end = steady_clock::now() + state_->transport.options().call_timeout;
    while (steady_clock::now() < end) {
        EngineCall look = container_call("GET", id, "/json");
        auto there = co_await state_->run(std::move(look));
        if (!there && there.error().code() == ErrorCode::not_found) co_return Status();
        if (!there) co_return there.error();
        co_await net::sleep_for(milliseconds(20));
    }
    co_return Error(ErrorCode::timeout, error.message());
}

Awaitable<Result<ContainerInfo>> Engine::inspect_container(std::string id) {
    EngineCall call = container_call("GET", id, "/json");
    auto document = co_await state_->transport.fetch(std::move(call));
    if (!document) co_return document.error();
    co_return state_->named(decode_container(std::move(*document)));
}

Awaitable<Result<std::vector<ContainerSummary>>> Engine::list_containers(ContainerFilter filter) {
    EngineCall call("GET", "/containers/json");
    call.with("all", filter.all ? "1" : "0");
    call.with("filters", filters_json({{"label", &filter.labels},
                                       {"name", &filter.names},
                                       {"status", &filter.states}}));
    auto document = co_await state_->transport.fetch(std::move(call));
    if (!document) co_return document.error();
    co_return state_->named(decode_container_list(*document));
}

Awaitable<Result<std::int64_t>> Engine::wait_container(std::string id, milliseconds limit) {
    EngineCall call = container_call("POST", id, "/wait");
    call.limit = std::max(limit, milliseconds(1));
    auto document = co_await state_->transport.fetch(std::move(call));
    if (!document) co_return document.error();
    DocumentReader read;
    std::int64_t code = read.integer(read.whole(*document), "StatusCode");
    auto status = read.status();
    if (!status) co_return state_->transport.named(status.error());
    co_return code;
}

Awaitable<Result<ContainerStats>> Engine::container_stats(std::string id) {
    EngineCall call = container_call("GET", id, "/stats");
    // Without one-shot the engine waits a second for a reading to compare with.
    call.with("stream", "0").with("one-shot", "1");
    auto reply = co_await state_->transport.call(std::move(call));
    if (!reply) co_return reply.error();
    // Podman says nothing at all of a container that does not run.
    if (reply->body.empty()) {
        co_return state_->transport.named(
            Error(ErrorCode::conflict, "container " + id + " is not running"));
    }
    auto document = json::parse(reply->body);
    if (!document) {
        co_return state_->transport.named(Error(
            ErrorCode::bad_gateway, "answered stats with no JSON: " + document.error().message()));
    }
    co_return state_->named(decode_stats(*document));
}

}  // namespace opensandbox::runtime::docker
