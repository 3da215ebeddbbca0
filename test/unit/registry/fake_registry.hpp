#pragma once

#include "base/digest.hpp"
#include "image/composition.hpp"
#include "image/layer_writer.hpp"
#include "image/manifest.hpp"
#include "image/staging.hpp"
#include "registry/registries.hpp"
#include "support/catch_result.hpp"
#include "support/http_fixture.hpp"
#include "support/scratch_directory.hpp"

#include <catch2/catch.hpp>

#include <fstream>
#include <map>
#include <string>
#include <vector>

/// A registry in memory, on loopback and without TLS, that can be as broken as a test needs.
namespace opensandbox::registry::test {

using test_support::Loop;
using test_support::ScratchDirectory;

/// What came in, for tests to look at.
struct Seen {
    std::string method;
    std::string target;
    http::Fields fields;
};

class FakeRegistry {
  public:
    explicit FakeRegistry(Loop& loop)
        : server_(loop, [this](http::Exchange& x) { return handle(x); }) {}

    [[nodiscard]] std::string name(const std::string& image) const {
        return "127.0.0.1:" + std::to_string(server_.port) + "/" + image;
    }
    [[nodiscard]] std::uint16_t port() const { return server_.port; }
    std::string add_blob(std::string bytes) {
        std::string hex = sha256_hex(bytes);
        blobs[hex] = std::move(bytes);
        return hex;
    }
    [[nodiscard]] std::size_t count(const std::string& method, const std::string& part) const {
        std::size_t found = 0;
        for (const Seen& one : seen) {
            if (one.method == method && one.target.find(part) != std::string::npos) ++found;
        }
        return found;
    }

    std::map<std::string, std::string> blobs;                              ///< by hex
    std::map<std::string, std::pair<std::string, std::string>> manifests;  ///< type, text
    std::map<std::string, std::string> uploads;                            ///< by id
    std::vector<Seen> seen;
    /// Answers instead of the registry when it returns true.
    std::function<Awaitable<bool>(http::Exchange&)> intercept;
    std::size_t chunk_cut = 0;  ///< bytes after which the next upload chunk breaks; 0: never

  private:
    Awaitable<void> handle(http::Exchange& exchange);
    Awaitable<void> send_blob(http::Exchange& exchange, const std::string& hex);
    Awaitable<void> handle_upload(http::Exchange& exchange);
    Awaitable<void> answer(http::Exchange& exchange, int status, http::Fields fields = {},
                           std::string body = {});

    http::test::TestServer server_;
};

inline Awaitable<void> FakeRegistry::answer(http::Exchange& exchange, int status,
                                            http::Fields fields, std::string body) {
    http::Response response(status);
    response.head.fields = std::move(fields);
    response.body = std::move(body);
    co_await exchange.respond(std::move(response));
}

inline Awaitable<void> FakeRegistry::send_blob(http::Exchange& exchange, const std::string& hex) {
    auto found = blobs.find(hex);
    if (found == blobs.end()) {
        co_return co_await answer(exchange, 404, {},
                                  R"({"errors":[{"code":"BLOB_UNKNOWN","message":"no blob"}]})");
    }
    std::size_t start = 0;
    int status = 200;
    http::Fields fields;
    if (auto range = exchange.request().fields.get("Range")) {
        start = std::stoul(std::string(range->substr(6)));
        status = 206;
        std::string size = std::to_string(found->second.size());
        fields.set("Content-Range", "bytes " + std::to_string(start) + "-" +
                                        std::to_string(found->second.size() - 1) + "/" + size);
    }
    co_await answer(exchange, status, std::move(fields), found->second.substr(start));
}

inline Awaitable<void> FakeRegistry::handle_upload(http::Exchange& exchange) {
    const std::string& method = exchange.request().method;
    std::string path(exchange.request().path());
    http::Query query(exchange.request().query());
    if (method == "POST") {
        auto mount = query.get("mount");
        if (mount && blobs.contains(std::string(mount->substr(7)))) {
            co_return co_await answer(exchange, 201);
        }
        std::string id = std::to_string(uploads.size() + 1);
        uploads[id];
        http::Fields fields{{"Location", path + id}};
        co_return co_await answer(exchange, 202, std::move(fields));
    }
    std::string id = path.substr(path.rfind('/') + 1);
    std::string& upload = uploads[id];
    http::Fields fields{{"Location", path}};
    if (method == "PATCH") {
        std::string piece(1000, '\0');
        while (true) {
            auto got = co_await exchange.body().read_some(piece);
            if (!got || *got == 0) break;
            upload.append(piece, 0, *got);
            if (chunk_cut != 0 && upload.size() >= chunk_cut) {
                chunk_cut = 0;
                // Leaves without a word in the middle of a message: the connection is cut.
                http::Fields length{{"Content-Length", "10"}};
                http::ResponseHead head(202, std::move(length));
                auto cut = co_await exchange.start(std::move(head));
                co_return;
            }
        }
    }
    if (method == "PUT") {
        std::string hex(query.get("digest").value_or("").substr(7));
        if (sha256_hex(upload) != hex) co_return co_await answer(exchange, 400);
        blobs[hex] = std::move(upload);
        co_return co_await answer(exchange, 201);
    }
    fields.set("Range", "0-" + std::to_string(upload.empty() ? 0 : upload.size() - 1));
    co_await answer(exchange, method == "GET" ? 204 : 202, std::move(fields));
}

inline Awaitable<void> FakeRegistry::handle(http::Exchange& exchange) {
    Seen now;
    now.method = exchange.request().method;
    now.target = exchange.request().target;
    now.fields = exchange.request().fields;
    seen.push_back(now);
    if (intercept) {
        bool done = co_await intercept(exchange);
        if (done) co_return;
    }
    std::string path(exchange.request().path());
    if (path == "/v2/") co_return co_await answer(exchange, 200);
    if (path.find("/blobs/uploads/") != std::string::npos) {
        co_return co_await handle_upload(exchange);
    }
    if (auto at = path.find("/blobs/sha256:"); at != std::string::npos) {
        std::string hex = path.substr(at + 14);
        co_return co_await send_blob(exchange, hex);
    }
    std::string tag = path.substr(path.rfind('/') + 1);
    if (now.method == "PUT") {
        auto body = co_await http::read_all(exchange.body(), 1 << 22);
        std::string type(now.fields.get("Content-Type").value_or(""));
        manifests["sha256:" + sha256_hex(*body)] = {type, *body};
        manifests[tag] = {type, *body};
        co_return co_await answer(exchange, 201);
    }
    auto found = manifests.find(tag);
    if (found == manifests.end()) {
        co_return co_await answer(
            exchange, 404, {},
            R"({"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]})");
    }
    http::Fields fields{{"Content-Type", found->second.first}};
    co_await answer(exchange, 200, std::move(fields), found->second.second);
}

/// An image of one layer for each text, each with a file "fileN" of that content, put into the
/// registry under `tag`. Returns the manifest's digest.
inline std::string add_image(FakeRegistry& registry, const std::string& tag,
                             const std::vector<std::string>& texts) {
    ScratchDirectory scratch;
    image::ImageDetails details;
    details.config.env = {{"MADE", "here"}};
    details.config.cmd = {"/bin/true"};
    std::vector<image::SentLayer> layers;
    for (std::size_t i = 0; i < texts.size(); ++i) {
        std::string number = std::to_string(i);
        std::filesystem::create_directory(scratch.path / number);
        std::ofstream(scratch.path / number / ("file" + number)) << texts[i];
        // The same content is the same layer, whenever it was written.
        std::filesystem::file_time_type then{};
        std::filesystem::last_write_time(scratch.path / number / ("file" + number), then);
        std::filesystem::last_write_time(scratch.path / number, then);
        auto blob = image::write_layer_blob(scratch.path / number, scratch.path / (number + ".gz"));
        REQUIRE(blob);
        image::SentLayer layer;
        layer.diff_id = blob->diff_id;
        layer.hex = blob->hex;
        layer.size = blob->size;
        layer.media_type = image::kLayerMediaType;
        layers.push_back(layer);
        registry.add_blob(*image::read_file(scratch.path / (number + ".gz")));
    }
    auto made = image::compose(details, layers);
    REQUIRE(made);
    registry.add_blob(made->config);
    std::string digest = "sha256:" + sha256_hex(made->manifest);
    registry.manifests[tag] = {made->media_type, made->manifest};
    registry.manifests[digest] = registry.manifests[tag];
    return digest;
}

/// Text that gzip cannot make small.
inline std::string noise(std::size_t size) {
    std::string text;
    for (unsigned i = 0; text.size() < size; ++i)
        text += sha256_hex(std::to_string(i));
    text.resize(size);
    return text;
}

/// A store and what pulls into it.
struct Puller {
    explicit Puller(Loop& loop) {
        auto opened = image::Store::open(scratch.path / "images");
        REQUIRE(opened);
        store = std::move(*opened);
        options.credentials = scratch.path / "logins.json";
        options.first_delay = std::chrono::milliseconds(1);
        options.upload_chunk = 40'000;
        make(loop);
    }
    void make(Loop& loop) {
        registries.reset();
        registries = std::make_unique<Registries>(loop.executor(), *store, options);
    }
    /// Whether a pull left anything, beside what the store lists. Ends the registries first.
    bool is_clean() {
        registries.reset();
        return std::filesystem::is_empty(scratch.path / "images" / "staging") &&
               std::filesystem::is_empty(scratch.path / "images" / "layers") &&
               store->list()->size() == 1;
    }
    std::string content(const std::string& reference, const std::string& file) {
        auto rootfs = store->resolve(reference);
        if (!rootfs) return "no image";
        for (const auto& layer : rootfs->layers) {
            if (auto text = image::read_file(layer / file)) return *text;
        }
        return "no file";
    }

    ScratchDirectory scratch;
    std::unique_ptr<image::Store> store;
    RegistryOptions options;
    std::unique_ptr<Registries> registries;
};

}  // namespace opensandbox::registry::test
