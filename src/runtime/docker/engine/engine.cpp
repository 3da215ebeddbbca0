#include "runtime/docker/engine/engine.hpp"

#include "runtime/docker/engine/decode.hpp"
#include "runtime/docker/engine/engine_state.hpp"

namespace opensandbox::runtime::docker {

Engine::Engine(asio::any_io_executor executor, EngineAddress address, EngineOptions options)
    : state_(std::make_shared<State>(std::move(executor), std::move(address), options)) {}

Engine::~Engine() = default;

const EngineAddress& Engine::address() const {
    return state_->transport.address();
}

Awaitable<Status> Engine::ping() {
    EngineCall call("GET", "/_ping");
    call.versioned = false;
    auto alive = co_await state_->run(std::move(call));
    if (!alive) co_return alive.error();
    auto version = co_await state_->transport.negotiate();
    if (!version) co_return version.error();
    co_return Status();
}

Awaitable<Result<EngineVersion>> Engine::version() {
    co_return co_await state_->transport.negotiate();
}

Awaitable<Result<EngineInfo>> Engine::info() {
    EngineCall call("GET", "/info");
    auto document = co_await state_->transport.fetch(std::move(call));
    if (!document) co_return document.error();
    co_return state_->named(decode_info(*document));
}

Awaitable<Result<VolumeInfo>> Engine::inspect_volume(std::string name) {
    EngineCall call("GET", "/volumes/" + path_part(name));
    auto document = co_await state_->transport.fetch(std::move(call));
    if (!document) co_return document.error();
    co_return state_->named(decode_volume(*document));
}

Awaitable<Result<VolumeInfo>> Engine::create_volume(VolumeRequest request) {
    auto object_of = [](const StringMap& map) {
        json::object document;
        for (const auto& [name, value] : map)
            document[name] = value;
        return document;
    };
    json::object body;
    body["Name"] = request.name;
    body["Driver"] = request.driver;
    body["Labels"] = object_of(request.labels);
    body["DriverOpts"] = object_of(request.options);
    EngineCall call("POST", "/volumes/create");
    call.content_type = "application/json";
    call.content = json::serialize(body);
    auto document = co_await state_->transport.fetch(std::move(call));
    if (!document) co_return document.error();
    co_return state_->named(decode_volume(*document));
}

Awaitable<Status> Engine::remove_volume(std::string name, bool force) {
    EngineCall call("DELETE", "/volumes/" + path_part(name));
    if (force) call.with("force", "1");
    co_return co_await state_->run_unless_missing(std::move(call));
}

Awaitable<Result<std::vector<VolumeInfo>>> Engine::list_volumes(std::vector<std::string> labels) {
    EngineCall call("GET", "/volumes");
    call.with("filters", filters_json({{"label", &labels}}));
    auto document = co_await state_->transport.fetch(std::move(call));
    if (!document) co_return document.error();
    co_return state_->named(decode_volume_list(*document));
}

Awaitable<Result<NetworkInfo>> Engine::inspect_network(std::string name) {
    EngineCall call("GET", "/networks/" + path_part(name));
    auto document = co_await state_->transport.fetch(std::move(call));
    if (!document) co_return document.error();
    co_return state_->named(decode_network(*document));
}

}  // namespace opensandbox::runtime::docker
