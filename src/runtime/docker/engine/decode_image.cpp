#include "base/digest.hpp"
#include "runtime/docker/engine/decode.hpp"
#include "runtime/docker/engine/document_reader.hpp"
#include "runtime/docker/engine/failure.hpp"

namespace opensandbox::runtime::docker {

std::string manifest_digest(const std::vector<std::string>& repo_digests) {
    std::string found;
    for (const std::string& named : repo_digests) {
        const std::string digest = named.substr(named.find('@') + 1);
        if (digest_hex(digest).empty()) continue;
        if (!found.empty() && found != digest) return {};
        found = digest;
    }
    return found;
}

Result<ImageInfo> decode_image(const json::value& document) {
    DocumentReader read;
    const json::object& from = read.whole(document);
    ImageInfo image;
    image.id = read.required(from, "Id");
    image.repo_tags = read.strings(from, "RepoTags");
    image.repo_digests = read.strings(from, "RepoDigests");
    image.os = read.text(from, "Os");
    image.architecture = read.text(from, "Architecture");
    image.variant = read.text(from, "Variant");
    image.size_bytes = read.integer(from, "Size");
    const json::object& config = read.object(from, "Config");
    image.env = read.strings(config, "Env");
    image.cmd = read.strings(config, "Cmd");
    image.entrypoint = read.strings(config, "Entrypoint");
    image.user = read.text(config, "User");
    image.working_directory = read.text(config, "WorkingDir");
    image.labels = read.string_map(config, "Labels");
    for (const auto& [port, nothing] : read.object(config, "ExposedPorts")) {
        image.exposed_ports.emplace_back(port);
    }
    if (auto status = read.status(); !status) return status.error();
    return image;
}

Result<std::vector<ImageSummary>> decode_image_list(const json::value& document) {
    DocumentReader read;
    std::vector<ImageSummary> images;
    for (const json::object* item : read.objects(document, "images")) {
        ImageSummary image;
        image.id = read.required(*item, "Id");
        image.repo_tags = read.strings(*item, "RepoTags");
        image.labels = read.string_map(*item, "Labels");
        image.size_bytes = read.integer(*item, "Size");
        images.push_back(std::move(image));
    }
    if (auto status = read.status(); !status) return status.error();
    return images;
}

Result<PullProgress> decode_pull_line(const json::value& document) {
    DocumentReader read;
    const json::object& from = read.whole(document);
    const json::object& detail = read.object(from, "errorDetail");
    std::string failure = read.text(from, "error");
    if (failure.empty()) failure = read.text(detail, "message");
    if (!failure.empty()) return error_of_pull(read.integer(detail, "code"), failure);
    PullProgress progress;
    progress.id = read.text(from, "id");
    progress.status = read.text(from, "status");
    const json::object& figures = read.object(from, "progressDetail");
    progress.current_bytes = read.integer(figures, "current");
    progress.total_bytes = read.integer(figures, "total");
    if (auto status = read.status(); !status) return status.error();
    return progress;
}

}  // namespace opensandbox::runtime::docker
