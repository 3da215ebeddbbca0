#include "base/scope_exit.hpp"
#include "http/client_stop.hpp"
#include "image/export.hpp"
#include "image/manifest.hpp"
#include "image/reference.hpp"
#include "json/document.hpp"
#include "net/task.hpp"
#include "server/api/images.hpp"
#include "server/api/request_body.hpp"
#include "server/api/services.hpp"
#include "server/error_response.hpp"

namespace opensandbox::server {
namespace {

constexpr std::size_t kPiece = std::size_t{256} << 10;

/// The query's `reference`; when it is missing or wrong, answers and returns nothing.
Awaitable<std::optional<std::string>> take_reference(http::Exchange& exchange) {
    http::Query query(exchange.request().query());
    auto given = query.get("reference");
    std::optional<std::string> reference;
    http::Response refusal;
    if (!given || given->empty()) {
        model::FieldErrors errors;
        model::Location at{std::string("query"), std::string("reference")};
        errors.emplace_back("missing", at, "Field required", "null");
        refusal = validation_response(errors);
    } else if (auto name = image::normalize_reference(*given)) {
        reference = std::move(*name);
        co_return reference;
    } else {
        refusal = error_response(image_error(name.error().within("reference")));
    }
    co_await exchange.respond(std::move(refusal));
    co_return reference;
}

json::array to_array(const std::vector<std::string>& texts) {
    json::array array;
    for (const std::string& text : texts)
        array.emplace_back(text);
    return array;
}

json::object to_json(const image::ImageDetails& details) {
    const image::ImageConfig& config = details.config;
    json::object env, labels;
    for (const auto& [name, value] : config.env)
        env[name] = value;
    for (const auto& [name, value] : config.labels)
        labels[name] = value;
    json::object run{{"env", std::move(env)},
                     {"user", config.user},
                     {"workingDirectory", config.working_directory},
                     {"entrypoint", to_array(config.entrypoint)},
                     {"cmd", to_array(config.cmd)},
                     {"labels", std::move(labels)},
                     {"exposedPorts", to_array(config.exposed_ports)}};
    json::array layers;
    for (const image::LayerInfo& layer : details.layers) {
        layers.emplace_back(
            json::object{{"diffId", "sha256:" + layer.diff_id}, {"size", layer.size}});
    }
    json::object object{{"reference", details.info.reference},
                        {"digest", details.info.digest},
                        {"size", details.info.size},
                        {"createdAt", to_rfc3339(details.info.created_at)},
                        {"builtIn", details.info.built_in},
                        {"os", "linux"},
                        {"architecture", image::machine_architecture()},
                        {"config", std::move(run)},
                        {"layers", std::move(layers)}};
    if (details.documents && !details.documents->source.empty()) {
        object["source"] = details.documents->source;
    }
    return object;
}

/// The built-in image, which the store does not take apart.
Result<image::ImageDetails> describe_host(image::Store& store) {
    auto rootfs = store.resolve(std::string(image::kHostReference));
    if (!rootfs) return rootfs.error();
    auto images = store.list();
    if (!images) return images.error();
    image::ImageDetails details;
    details.info = images->front();
    details.config = std::move(rootfs->config);
    return details;
}

Awaitable<void> inspect_image(Services& services, http::Exchange& exchange) {
    using Details = Result<image::ImageDetails>;
    auto reference = co_await take_reference(exchange);
    if (!reference) co_return;
    image::Store& store = services.images;
    std::function<Details()> work = [&store, name = *reference] {
        return name == image::kHostReference ? describe_host(store) : store.inspect(name);
    };
    auto details = co_await net::run_blocking<Details>(services.image_pool, std::move(work));
    http::Response response;
    if (details) {
        response = http::json_response(200, json::serialize(to_json(*details)));
    } else {
        response = error_response(image_error(details.error()));
    }
    co_await exchange.respond(std::move(response));
}

using Export = std::shared_ptr<image::ExportedImage>;

Awaitable<Result<std::size_t>> read_export(asio::thread_pool& pool, Export image,
                                           std::shared_ptr<std::string> buffer) {
    using Count = Result<std::size_t>;
    std::function<Count()> work = [image, buffer] { return image->read(*buffer); };
    co_return co_await net::run_blocking<Count>(pool, std::move(work));
}

Awaitable<void> export_image(Services& services, http::Exchange& exchange) {
    auto reference = co_await take_reference(exchange);
    if (!reference) co_return;
    asio::thread_pool& pool = services.image_pool;
    http::ClientStop client(exchange);
    std::function<Result<Export>()> work = [&store = services.images, name = *reference,
                                            stop = client.token()]() -> Result<Export> {
        auto made = image::ExportedImage::make(store, name, stop);
        if (!made) return made.error();
        return Export(std::move(*made));
    };
    auto image = co_await net::run_blocking<Result<Export>>(pool, std::move(work));
    if (!image) {
        auto refusal = error_response(image_error(image.error()));
        co_return co_await exchange.respond(std::move(refusal));
    }
    // Removing the packed layers may wait for the disk.
    ScopeExit discard([&] { asio::post(pool, [made = std::move(*image)] {}); });
    http::Fields fields{{"Content-Type", "application/x-tar"}};
    http::ResponseHead head(200, std::move(fields));
    auto sent = co_await exchange.start(std::move(head));
    auto buffer = std::make_shared<std::string>(kPiece, '\0');
    while (sent) {
        auto count = co_await read_export(pool, *image, buffer);
        if (!count) co_return;  // the body breaks off, which the client sees
        if (*count == 0) break;
        sent = co_await exchange.write(std::string_view(*buffer).substr(0, *count));
    }
    if (sent) co_await exchange.finish();
}

/// {"all":true}; an empty body is all defaults.
Result<bool> parse_prune(std::string_view body) {
    if (body.empty()) return false;
    auto document = json::parse(body);
    if (!document) return document.error();
    if (!document->is_object()) return Error(ErrorCode::invalid_argument, "must be an object");
    auto all = json::get_bool(document->get_object(), "all");
    if (!all) return all.error();
    return all->value_or(false);
}

Awaitable<void> prune_images(Services& services, http::Exchange& exchange) {
    using Pruned = Result<image::PruneReport>;
    auto body = co_await read_json_body(exchange);
    if (!body) co_return;
    auto all = parse_prune(*body);
    if (!all) {
        auto refusal = error_response(image_error(all.error()));
        co_return co_await exchange.respond(std::move(refusal));
    }
    image::Store& store = services.images;
    std::function<Pruned()> work = [&store, everything = *all,
                                    used = images_in_use(services.lifecycle)]() -> Pruned {
        auto digests = digests_of(store, used);
        if (!digests) return digests.error();
        return store.prune([&](const std::string& digest) { return digests->contains(digest); },
                           everything);
    };
    auto pruned = co_await net::run_blocking<Pruned>(services.image_pool, std::move(work));
    http::Response response;
    if (pruned) {
        json::object report{{"removed", to_array(pruned->removed)}, {"freed", pruned->freed}};
        response = http::json_response(200, json::serialize(report));
    } else {
        response = error_response(image_error(pruned.error()));
    }
    co_await exchange.respond(std::move(response));
}

}  // namespace

void add_image_detail_routes(http::Router& router, Services& services, Mount mount) {
    using http::Exchange;
    std::string all = std::string(mount) + "/images";
    Services* s = &services;
    router.add("GET", all + "/inspect", [s](Exchange& x) { return inspect_image(*s, x); });
    router.add("GET", all + "/export", [s](Exchange& x) { return export_image(*s, x); });
    router.add("POST", all + "/prune", [s](Exchange& x) { return prune_images(*s, x); });
}

}  // namespace opensandbox::server
