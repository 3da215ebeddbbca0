#include "runtime/docker/sidecar_image.hpp"

#include "base/digest.hpp"
#include "base/log.hpp"
#include "base/scope_exit.hpp"
#include "json/document.hpp"
#include "net/task.hpp"
#include "runtime/docker/names.hpp"
#include "runtime/docker/own_program.hpp"
#include "runtime/docker/tar_archive.hpp"

#include <boost/asio/redirect_error.hpp>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace opensandbox::runtime::docker {
namespace {

constexpr std::string_view kRepository = "opensandbox-egress";
/// Changes with how the image is put together.
constexpr std::string_view kLayout = "1";
constexpr std::string_view kTime = "1970-01-01T00:00:00Z";
constexpr std::uint32_t kSidecarProgramMode = 0755;
constexpr std::uint32_t kFileMode = 0644;

/// Where hosts keep their root certificates; the first that is there counts.
constexpr std::array kRootBundles{
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
};

/// Folders whose parents an engine would make without search permission, and those that the
/// sidecar writes to: it has no capability to do without permissions.
struct Folder {
    std::string_view name;
    std::uint32_t mode;
};
constexpr std::array<Folder, 11> kFolders{{
    {"etc", 0755},
    {"etc/ssl", 0755},
    {"etc/ssl/certs", 0755},
    {"opt", 0755},
    {"opt/opensandbox", 0755},
    {"run", 0755},
    {"tmp", 01777},
    {"var", 0755},
    {"var/lib", 0755},
    {"var/lib/mitmproxy", 0700},
    {"var/egress", 0755},
}};

std::string host_roots() {
    for (const char* path : kRootBundles) {
        std::ifstream in(path, std::ios::binary);
        std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
        if (!text.empty()) return text;
    }
    return {};
}

json::object configuration(const SidecarImageParts& parts, const std::string& layer_digest) {
    json::object config;
    config["Entrypoint"] = json::array{"/opensandbox", "egress", "--supervised"};
    config["Labels"] = json::object{{label::kEgressImage, parts.version}};
    json::array layers;
    layers.emplace_back("sha256:" + layer_digest);
    json::array history;
    history.emplace_back(json::object{{"created", kTime}, {"created_by", "opensandbox"}});
    json::object document;
    document["architecture"] = parts.architecture;
    document["os"] = "linux";
    document["created"] = kTime;
    document["config"] = std::move(config);
    document["rootfs"] = json::object{{"type", "layers"}, {"diff_ids", std::move(layers)}};
    document["history"] = std::move(history);
    return document;
}

std::string layer_of(const SidecarImageParts& parts) {
    TarArchive tar;
    for (const Folder& folder : kFolders)
        tar.add_directory(folder.name, folder.mode);
    if (!parts.roots.empty()) {
        tar.add_file("etc/ssl/certs/ca-certificates.crt", parts.roots, kFileMode);
    }
    tar.add_file("opensandbox", parts.program, kSidecarProgramMode);
    return tar.finish();
}

}  // namespace

std::string sidecar_image_archive(const SidecarImageParts& parts) {
    std::string layer = layer_of(parts);
    std::string config = json::serialize(json::value(configuration(parts, sha256_hex(layer))));
    std::string config_name = sha256_hex(config) + ".json";
    json::object image;
    image["Config"] = config_name;
    image["RepoTags"] = json::array{parts.reference};
    image["Layers"] = json::array{"layer/layer.tar"};
    json::array manifest;
    manifest.emplace_back(std::move(image));
    TarArchive tar;
    tar.add_file(config_name, config, kFileMode);
    tar.add_directory("layer", 0755);
    tar.add_file("layer/layer.tar", layer, kFileMode);
    tar.add_file("manifest.json", json::serialize(json::value(std::move(manifest))), kFileMode);
    return tar.finish();
}

SidecarImage::SidecarImage(asio::any_io_executor executor, Engine& engine,
                           asio::thread_pool& blocking, const DockerOptions& options)
    : engine_(engine), blocking_(blocking), options_(options), done_(executor) {}

Awaitable<Result<std::string>> SidecarImage::ensure(std::string architecture) {
    while (busy_) {
        boost::system::error_code ignored;
        co_await done_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
    busy_ = true;
    done_.expires_at(asio::steady_timer::time_point::max());
    ScopeExit wake([this] {
        busy_ = false;
        done_.cancel();
    });
    co_return co_await provide(std::move(architecture));
}

Awaitable<Result<std::string>> SidecarImage::provide(std::string architecture) {
    bool own = options_.egress.image.empty();
    if (own && architecture != own_architecture()) {
        co_return Error(ErrorCode::unsupported, "the engine runs on " + architecture +
                                                    ", this program on " +
                                                    std::string(own_architecture()) +
                                                    " only; set egress.image to one of that "
                                                    "platform");
    }
    if (own && version_.empty()) {
        std::function<Result<std::string>()> work =
            [path = options_.executable.string()]() -> Result<std::string> {
            auto program = digest_of_program(path);
            if (!program) return program.error();
            return sha256_hex(std::string(kLayout) + *program + host_roots());
        };
        auto version = co_await net::run_blocking<Result<std::string>>(blocking_, std::move(work));
        if (!version) co_return version.error();
        version_ = version->substr(0, kVersionDigits);
    }
    reference_ = own ? std::string(kRepository) + ":" + version_ : options_.egress.image;
    auto image = co_await engine_.inspect_image(reference_);
    if (image) co_return reference_;
    if (image.error().code() != ErrorCode::not_found) co_return image.error();
    Status provided;
    if (own) {
        provided = co_await load();
    } else {
        provided = co_await pull();
    }
    if (!provided) co_return provided.error();
    co_return reference_;
}

Awaitable<Status> SidecarImage::pull() {
    PullRequest request(reference_);
    auto pulled = co_await engine_.pull_image(std::move(request));
    if (!pulled) co_return pulled.error().within("egress.image");
    co_return Status();
}

Awaitable<Status> SidecarImage::load() {
    std::function<Result<std::string>()> work = [path = options_.executable.string(),
                                                 reference = reference_,
                                                 version = version_]() -> Result<std::string> {
        auto program = read_program(path);
        if (!program) return program.error();
        SidecarImageParts parts;
        parts.program = std::move(*program);
        parts.roots = host_roots();
        parts.architecture = own_architecture();
        parts.reference = reference;
        parts.version = version;
        if (parts.roots.empty()) {
            log::warn(
                "this host has no bundle of root certificates: egress sidecars that "
                "intercept TLS will trust no server but those of "
                "egress.upstream_proxy.ca_cert_path");
        }
        return sidecar_image_archive(parts);
    };
    auto tar = co_await net::run_blocking<Result<std::string>>(blocking_, std::move(work));
    if (!tar) co_return tar.error();
    auto loaded = co_await engine_.load_image(std::move(*tar));
    if (!loaded) co_return loaded.error().within("making the egress sidecar's image");
    auto image = co_await engine_.inspect_image(reference_);
    if (!image) co_return image.error().within("the egress sidecar's image");
    log::info("egress sidecar's image made", {{"image", reference_}});
    co_return Status();
}

}  // namespace opensandbox::runtime::docker
