#include "runtime/docker/engine/decode.hpp"
#include "runtime/docker/engine/engine.hpp"
#include "runtime/docker/engine/engine_state.hpp"
#include "runtime/docker/engine/failure.hpp"
#include "runtime/docker/engine/image.hpp"
#include "runtime/docker/engine/line_stream.hpp"

namespace opensandbox::runtime::docker {
namespace {

EngineCall pull_call(const PullRequest& request) {
    PullReference reference = split_reference(request.image);
    EngineCall call("POST", "/images/create");
    call.with("fromImage", reference.name).with("tag", reference.tag);
    if (!request.platform.empty()) call.with("platform", request.platform);
    bool known = !request.auth.username.empty() || !request.auth.password.empty();
    if (known) {
        call.fields.set("X-Registry-Auth", registry_auth_header(request.auth, request.image));
    }
    return call;
}

}  // namespace

Awaitable<Result<ImageInfo>> Engine::inspect_image(std::string image) {
    EngineCall call("GET", "/images/" + image_part(image) + "/json");
    auto document = co_await state_->transport.fetch(std::move(call));
    if (!document) co_return document.error();
    co_return state_->named(decode_image(*document));
}

Awaitable<Result<std::vector<ImageSummary>>> Engine::list_images(
    std::vector<std::string> references) {
    EngineCall call("GET", "/images/json");
    call.with("filters", filters_json({{"reference", &references}}));
    auto document = co_await state_->transport.fetch(std::move(call));
    if (!document) co_return document.error();
    co_return state_->named(decode_image_list(*document));
}

Awaitable<Status> Engine::pull_image(PullRequest request) {
    Transport& transport = state_->transport;
    EngineCall call = pull_call(request);
    auto stream = co_await transport.open(std::move(call), transport.options().call_timeout);
    if (!stream) {
        Error error = stream.error();
        // Older engines answer whatever the registry refused with a plain 500.
        bool plain = error.code() == ErrorCode::internal;
        if (plain) error = error_of_pull(0, error.message());
        co_return error;
    }
    DocumentStream lines(std::move(*stream), transport.options().max_line);
    while (true) {
        auto document = co_await lines.next();
        if (!document) co_return document.error();
        if (!*document) co_return Status();
        auto progress = decode_pull_line(**document);
        if (!progress) co_return transport.named(progress.error());
        if (request.on_progress) request.on_progress(*progress);
    }
}

Awaitable<Status> Engine::load_image(std::string tar) {
    Transport& transport = state_->transport;
    EngineCall call("POST", "/images/load");
    call.with("quiet", "1");
    call.content_type = "application/x-tar";
    call.content = std::move(tar);
    auto stream = co_await transport.open(std::move(call), transport.options().call_timeout);
    if (!stream) co_return stream.error();
    DocumentStream lines(std::move(*stream), transport.options().max_line);
    while (true) {
        auto document = co_await lines.next();
        if (!document) co_return document.error();
        if (!*document) co_return Status();
        auto progress = decode_pull_line(**document);
        if (!progress) co_return transport.named(progress.error());
    }
}

Awaitable<Status> Engine::remove_image(std::string image, bool force) {
    EngineCall call("DELETE", "/images/" + image_part(image));
    if (force) call.with("force", "1");
    co_return co_await state_->run_unless_missing(std::move(call));
}

Awaitable<Status> Engine::tag_image(std::string image, std::string repository, std::string tag) {
    EngineCall call("POST", "/images/" + image_part(image) + "/tag");
    call.with("repo", repository).with("tag", tag);
    co_return co_await state_->run(std::move(call));
}

Awaitable<Result<std::string>> Engine::commit(CommitRequest request) {
    EngineCall call("POST", "/commit");
    call.with("container", request.container).with("repo", request.repository);
    call.with("tag", request.tag).with("pause", request.pause ? "1" : "0");
    if (!request.comment.empty()) call.with("comment", request.comment);
    for (const std::string& change : request.changes)
        call.with("changes", change);
    // Podman insists on a document.
    call.content_type = "application/json";
    call.content = "{}";
    auto document = co_await state_->transport.fetch(std::move(call));
    if (!document) co_return document.error();
    auto created = state_->named(decode_created(*document));
    if (!created) co_return created.error();
    // Podman leaves the algorithm out.
    bool named = created->id.find(':') != std::string::npos;
    if (!named) created->id.insert(0, "sha256:");
    co_return created->id;
}

}  // namespace opensandbox::runtime::docker
