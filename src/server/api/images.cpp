#include "server/api/images.hpp"

#include "base/log.hpp"
#include "base/scope_exit.hpp"
#include "http/body_pipe.hpp"
#include "http/client_stop.hpp"
#include "net/latch.hpp"
#include "server/api/request_body.hpp"
#include "server/api/services.hpp"
#include "server/error_response.hpp"

namespace opensandbox::server {
namespace {

constexpr std::chrono::seconds kDrainTime{30};

Awaitable<void> list_images(Services& services, http::Exchange& exchange) {
    using Images = Result<std::vector<image::ImageInfo>>;
    image::Store& store = services.images;
    std::function<Images()> work = [&store] { return store.list(); };
    auto images = co_await net::run_blocking<Images>(services.image_pool, std::move(work));
    http::Response response;
    if (images) {
        std::string body = "{\"items\":[";
        for (std::size_t i = 0; i < images->size(); ++i) {
            if (i > 0) body += ',';
            body += image_json(images.value()[i]);
        }
        body += "]}";
        response = http::json_response(200, std::move(body));
    } else {
        response = error_response(image_error(images.error()));
    }
    co_await exchange.respond(std::move(response));
}

/// Lets a client that still sends read the answer: what it sends is dropped for a while.
Awaitable<void> drain(http::BodyReader& body) {
    auto deadline = std::chrono::steady_clock::now() + kDrainTime;
    std::string piece(64 * 1024, '\0');
    std::span<char> room(piece);
    while (std::chrono::steady_clock::now() < deadline) {
        auto got = co_await body.read_some(room);
        if (!got || *got == 0) co_return;
    }
}

using Imported = Result<image::ImageInfo>;

/// Feeds the body to the import on another thread and waits for it. The body is borrowed for as
/// long as this runs; the import lets go of the pipe whatever happens, and ends when the client is
/// gone, also after all of the body has come.
Awaitable<Imported> import_body(Services& services, http::Exchange& exchange,
                                std::string reference) {
    auto executor = co_await asio::this_coro::executor;
    auto pipe = std::make_shared<http::BodyPipe>(executor);
    auto done = std::make_shared<net::Latch>(executor);
    auto outcome = std::make_shared<std::optional<Imported>>();
    std::stop_source stop;
    image::Store* store = &services.images;
    asio::post(services.image_pool, [=, token = stop.get_token()] {
        image::ByteSource source = [&pipe = *pipe](std::span<char> into) {
            return pipe.read(into);
        };
        Imported imported = store->import_archive(reference, source, {}, token);
        pipe->close();
        asio::post(executor, [outcome, done, imported = std::move(imported)]() mutable {
            outcome->emplace(std::move(imported));
            done->open();
        });
    });
    ScopeExit abandon([&] { pipe->fail(Error(ErrorCode::cancelled, "the upload was abandoned")); });
    co_await pipe->pump(exchange.body());
    http::ClientStop client(exchange, stop);
    co_await done->wait();
    co_return std::move(**outcome);
}

Awaitable<void> import_image(Services& services, http::Exchange& exchange) {
    http::Query query(exchange.request().query());
    auto reference = query.get("reference");
    if (!reference || reference->empty()) {
        model::FieldErrors errors;
        model::Location at{std::string("query"), std::string("reference")};
        errors.emplace_back("missing", at, "Field required", "null");
        auto refusal = validation_response(errors);
        co_return co_await exchange.respond(std::move(refusal));
    }
    // Before the upload: a bad name must not cost one.
    auto name = image::normalize_reference(*reference);
    if (!name) {
        auto refusal = error_response(image_error(name.error().within("reference")));
        co_return co_await exchange.respond(std::move(refusal));
    }
    auto imported = co_await import_body(services, exchange, name.value());
    http::Response response;
    if (imported) {
        response = http::json_response(201, image_json(*imported));
        log::info("image imported", {{"image", imported->reference}, {"digest", imported->digest}});
    } else {
        if (imported.error().code() == ErrorCode::cancelled) co_return;
        co_await drain(exchange.body());
        response = error_response(image_error(imported.error()));
    }
    co_await exchange.respond(std::move(response));
}

Awaitable<void> remove_image(Services& services, http::Exchange& exchange) {
    std::string raw(exchange.parameter("reference"));
    std::string reference = http::percent_decode(raw).value_or(raw);
    auto used = images_in_use(services.lifecycle);
    image::Store& store = services.images;
    std::function<Status()> work = [&store, reference, used = std::move(used)]() -> Status {
        auto digests = digests_of(store, used);
        if (!digests) return digests.error();
        return store.remove(reference,
                            [&](const std::string& digest) { return digests->contains(digest); });
    };
    auto removed = co_await net::run_blocking<Status>(services.image_pool, std::move(work));
    http::Response response(204);
    if (!removed) response = error_response(image_error(removed.error()));
    co_await exchange.respond(std::move(response));
}

}  // namespace

Error transfer_error(const Error& error) {
    if (!error.wire().empty()) return error;
    auto turn = [&](ErrorCode code, const char* wire) {
        return Error(code, wire, error.message());
    };
    switch (error.code()) {
        case ErrorCode::not_found:
        case ErrorCode::conflict:
        case ErrorCode::too_large:
        case ErrorCode::invalid_argument: return image_error(error);
        case ErrorCode::unauthenticated:
        case ErrorCode::permission_denied:
            return turn(ErrorCode::permission_denied, "IMAGE::ACCESS_DENIED");
        case ErrorCode::unsupported: return turn(ErrorCode::invalid_argument, "IMAGE::UNSUPPORTED");
        default: return turn(ErrorCode::bad_gateway, "IMAGE::TRANSFER_FAILED");
    }
}

std::set<std::string> images_in_use(lifecycle::Lifecycle& lifecycle) {
    std::set<std::string> used;
    lifecycle.index().for_each([&](const store::SandboxRecord& record) {
        if (auto name = image::normalize_reference(record.base_image)) used.insert(*name);
    });
    lifecycle.snapshots().index().for_each([&](const store::SnapshotRecord& record) {
        if (auto name = image::normalize_reference(record.base_image)) used.insert(*name);
    });
    return used;
}

Result<std::set<std::string>> digests_of(image::Store& store,
                                         const std::set<std::string>& references) {
    auto images = store.list();
    if (!images) return images.error();
    std::set<std::string> digests;
    for (const auto& info : images.value()) {
        if (references.contains(info.reference)) digests.insert(info.digest);
    }
    return digests;
}

void add_image_routes(http::Router& router, Services& services, Mount mount) {
    using http::Exchange;
    std::string all = std::string(mount) + "/images";
    Services* s = &services;
    router.add("GET", all, [s](Exchange& x) { return list_images(*s, x); });
    router.add("POST", all, [s](Exchange& x) { return import_image(*s, x); });
    router.add("DELETE", all + "/{reference...}", [s](Exchange& x) { return remove_image(*s, x); });
    add_image_transfer_routes(router, services, mount);
    add_image_detail_routes(router, services, mount);
}

}  // namespace opensandbox::server
