#include "base/digest.hpp"
#include "registry/transfer.hpp"

namespace opensandbox::registry {
namespace {

constexpr std::string_view kAccepted =
    "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, "
    "application/vnd.docker.distribution.manifest.list.v2+json, "
    "application/vnd.docker.distribution.manifest.v2+json";
constexpr int kMostNestedIndexes = 3;

struct Manifest {
    std::string text;
    std::string media_type;
    std::string hex;
};

Error wrong_bytes(const std::string& what, const std::string& is, std::string_view must_be) {
    return {ErrorCode::invalid_argument, what + ": the registry sent bytes of digest sha256:" + is +
                                             ", must be sha256:" + std::string(must_be)};
}

/// By tag, or by digest, which is then checked.
Awaitable<Result<Manifest>> fetch_manifest(Session& session, std::string reference) {
    Call call("GET", session.path("manifests/" + reference));
    call.fields.set("Accept", std::string(kAccepted));
    auto answer = co_await session.fetch(std::move(call), image::kLargestDocument);
    if (!answer) co_return answer.error().within("manifest");
    Manifest manifest;
    manifest.text = std::move(answer->body);
    manifest.hex = sha256_hex(manifest.text);
    std::string_view type = answer->head.fields.get("Content-Type").value_or("");
    manifest.media_type = type.substr(0, type.find_first_of("; "));
    // A registry that says which bytes it means is held to it.
    std::string_view stated = answer->head.fields.get("Docker-Content-Digest").value_or("");
    for (std::string_view hex : {digest_hex(reference), digest_hex(stated)}) {
        if (!hex.empty() && hex != manifest.hex) {
            co_return wrong_bytes("manifest", manifest.hex, hex);
        }
    }
    co_return manifest;
}

bool is_index(const Manifest& manifest) {
    image::Descriptor descriptor;
    descriptor.media_type = manifest.media_type;
    return image::is_index(descriptor) || image::looks_like_index(manifest.text);
}

Awaitable<Result<std::string>> fetch_config(Session& session, image::Descriptor descriptor) {
    if (descriptor.size > image::kLargestDocument) {
        co_return Error(ErrorCode::too_large, "config: must not be larger than 4 MiB");
    }
    Call call("GET", session.path("blobs/sha256:" + descriptor.hex));
    auto answer = co_await session.fetch(std::move(call), image::kLargestDocument);
    if (!answer) co_return answer.error().within("config");
    if (std::string hex = sha256_hex(answer->body); hex != descriptor.hex) {
        co_return wrong_bytes("config", hex, descriptor.hex);
    }
    co_return std::move(answer->body);
}

}  // namespace

Awaitable<Result<RemoteImage>> fetch_image(Session& session) {
    auto manifest = co_await fetch_manifest(session, session.location().reference);
    if (!manifest) co_return manifest.error();
    for (int level = 0; is_index(*manifest); ++level) {
        if (level == kMostNestedIndexes) {
            co_return Error(ErrorCode::invalid_argument, "index: too many indexes in each other");
        }
        auto index = image::parse_index(manifest->text);
        if (!index) co_return index.error().within("index");
        auto chosen = image::choose_platform(*index);
        if (!chosen) co_return chosen.error();
        manifest = co_await fetch_manifest(session, "sha256:" + chosen->hex);
        if (!manifest) co_return manifest.error();
    }
    if (manifest->media_type.find("manifest.v1") != std::string::npos &&
        manifest->media_type.find("docker.distribution") != std::string::npos) {
        co_return Error(ErrorCode::unsupported,
                        "manifest: the registry has it in Docker's first format only");
    }
    RemoteImage image;
    auto parsed = image::parse_manifest(manifest->text);
    if (!parsed) co_return parsed.error().within("manifest");
    image.manifest = std::move(*parsed);
    auto config = co_await fetch_config(session, image.manifest.config);
    if (!config) co_return config.error();
    auto document = image::parse_config(*config);
    if (!document) co_return document.error().within("config");
    image.config = std::move(*document);
    auto fits = image::check_platform(image.config.os, image.config.architecture);
    if (!fits) co_return fits.error();
    if (image.config.diff_ids.size() != image.manifest.layers.size()) {
        co_return Error(ErrorCode::invalid_argument,
                        "config: rootfs.diff_ids and the manifest's layers differ in number");
    }
    image.digest = "sha256:" + manifest->hex;
    image.documents.media_type = std::move(manifest->media_type);
    image.documents.manifest = std::move(manifest->text);
    image.documents.config = std::move(*config);
    image.documents.source = session.location().source();
    co_return image;
}

}  // namespace opensandbox::registry
