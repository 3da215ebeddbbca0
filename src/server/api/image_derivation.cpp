#include "base/log.hpp"
#include "http/client_stop.hpp"
#include "net/task.hpp"
#include "server/api/images.hpp"
#include "server/api/request_body.hpp"
#include "server/api/routes.hpp"
#include "server/api/services.hpp"
#include "server/error_response.hpp"

/// Images made here: of snapshots, and of other images. Ours: the contract has neither.
namespace opensandbox::server {
namespace {

using Made = Result<image::ImageInfo>;

Awaitable<Made> derive(Services& services, http::Exchange& exchange, std::string reference,
                       image::Derivation wanted) {
    http::ClientStop client(exchange);
    image::Store& store = services.images;
    std::function<Made()> work = [&store, reference = std::move(reference),
                                  wanted = std::move(wanted), stop = client.token()] {
        return store.derive(reference, wanted, stop);
    };
    co_return co_await net::run_blocking<Made>(services.image_pool, std::move(work));
}

Awaitable<void> respond(http::Exchange& exchange, Made made) {
    http::Response response;
    if (made) {
        response = http::json_response(201, image_json(*made));
        log::info("image made", {{"image", made->reference}, {"digest", made->digest}});
    } else {
        response = error_response(image_error(made.error()));
    }
    co_await exchange.respond(std::move(response));
}

/// The checked body, or nothing when it was refused.
Awaitable<std::optional<NamedImage>> read_request(
    http::Exchange& exchange,
    std::variant<NamedImage, model::FieldErrors> (*parse)(std::string_view)) {
    auto body = co_await read_json_body(exchange);
    if (!body) co_return std::nullopt;
    auto parsed = parse(*body);
    if (const auto* errors = std::get_if<model::FieldErrors>(&parsed)) {
        auto refusal = validation_response(*errors);
        co_await exchange.respond(std::move(refusal));
        co_return std::nullopt;
    }
    co_return std::move(std::get<NamedImage>(parsed));
}

Awaitable<void> make_of_snapshot(Services& services, http::Exchange& exchange) {
    std::string id(exchange.parameter("snapshot_id"));
    if (!services.lifecycle.capabilities().snapshot_content) {
        auto refusal =
            error_response(501, "SNAPSHOT::NOT_IMPLEMENTED",
                           "The runtime of this server cannot make images of snapshots.");
        co_return co_await exchange.respond(std::move(refusal));
    }
    auto request = co_await read_request(exchange, parse_snapshot_image);
    if (!request) co_return;
    auto opened = co_await services.lifecycle.snapshots().open(id, exchange.tenant);
    Made made = Error();
    if (opened) {
        image::Derivation wanted;
        wanted.base = opened->content.image_digest;
        wanted.layers = opened->content.layers;
        wanted.change = std::move(request->change);
        made =
            co_await derive(services, exchange, std::move(request->reference), std::move(wanted));
    } else {
        made = opened.error();
    }
    co_await respond(exchange, std::move(made));
}

Awaitable<void> tag_image(Services& services, http::Exchange& exchange) {
    auto request = co_await read_request(exchange, parse_image_tag);
    if (!request) co_return;
    image::Derivation wanted;
    wanted.base = std::move(request->source);
    wanted.change = std::move(request->change);
    auto made =
        co_await derive(services, exchange, std::move(request->reference), std::move(wanted));
    co_await respond(exchange, std::move(made));
}

}  // namespace

void add_image_derivation_routes(http::Router& router, Services& services, Mount mount) {
    using http::Exchange;
    std::string prefix(mount);
    Services* s = &services;
    router.add("POST", prefix + "/snapshots/{snapshot_id}/image",
               [s](Exchange& x) { return make_of_snapshot(*s, x); });
    router.add("POST", prefix + "/images/tag", [s](Exchange& x) { return tag_image(*s, x); });
}

}  // namespace opensandbox::server
