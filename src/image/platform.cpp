#include "image/budget.hpp"
#include "image/manifest.hpp"

#include <algorithm>

namespace opensandbox::image {
namespace {

#if defined(__x86_64__)
constexpr std::string_view kArchitectureHere = "amd64";
constexpr std::string_view kPlainestVariant = "v1";
#elif defined(__aarch64__)
constexpr std::string_view architecture_here = "arm64";
constexpr std::string_view plainest_variant = "v8";
#else
#error "images are known for x86-64 and arm64 machines"
#endif

constexpr std::string_view kOsHere = "linux";

bool for_this_platform(const std::string& os, const std::string& architecture) {
    return (os.empty() || os == kOsHere) &&
           (architecture.empty() || architecture == kArchitectureHere);
}

/// Of instruction set levels and the like ("v8", "v3"), the one that needs least comes first.
std::string_view rank(std::string_view variant) {
    return variant == kPlainestVariant ? std::string_view() : variant;
}

/// Names in archives are full references ("docker.io/library/x:1") or only tags.
bool means(std::string_view name, const Reference& reference) {
    if (name == reference.text() || name == reference.tag) return true;
    auto parsed = parse_reference(name);
    if (!parsed || parsed->tag != reference.tag) return false;
    for (std::string_view prefix : {"docker.io/library/", "docker.io/"}) {
        if (parsed->name == std::string(prefix) + reference.name) return true;
    }
    return parsed->name == reference.name;
}

Error unclear(std::string_view names) {
    return {ErrorCode::invalid_argument,
            "the archive holds several images and none is named like the reference: " +
                std::string(names)};
}

void append_name(std::string& names, std::string_view name) {
    if (!names.empty()) names += ", ";
    names += name.empty() ? "(no name)" : in_quotes(name);
}

}  // namespace

std::string_view machine_architecture() {
    return kArchitectureHere;
}

bool is_index(const Descriptor& descriptor) {
    return descriptor.media_type == "application/vnd.oci.image.index.v1+json" ||
           descriptor.media_type == "application/vnd.docker.distribution.manifest.list.v2+json";
}

bool is_layer(const Descriptor& descriptor) {
    std::string_view type = descriptor.media_type;
    for (std::string_view compression : {"+gzip", "+zstd", ".gzip"}) {
        if (type.ends_with(compression)) type.remove_suffix(compression.size());
    }
    return type == "application/vnd.oci.image.layer.v1.tar" ||
           type == "application/vnd.oci.image.layer.nondistributable.v1.tar" ||
           type == "application/vnd.docker.image.rootfs.diff.tar" ||
           type == "application/vnd.docker.image.rootfs.foreign.diff.tar";
}

Status check_platform(const std::string& os, const std::string& architecture) {
    if (for_this_platform(os, architecture)) return {};
    return Error(ErrorCode::unsupported, "the image is for " + in_quotes(os + "/" + architecture) +
                                             ", this machine is " + std::string(kOsHere) + "/" +
                                             std::string(kArchitectureHere));
}

Result<Descriptor> choose(const std::vector<Descriptor>& index, const Reference& reference) {
    std::vector<const Descriptor*> fitting;
    std::string others;
    for (const Descriptor& entry : index) {
        if (for_this_platform(entry.os, entry.architecture)) {
            fitting.push_back(&entry);
        } else {
            append_name(others, entry.os + "/" + entry.architecture);
        }
    }
    if (fitting.empty()) {
        return Error(ErrorCode::unsupported, "manifests: none is for " + std::string(kOsHere) +
                                                 "/" + std::string(kArchitectureHere) +
                                                 (others.empty() ? "" : ": " + others));
    }
    auto same = [&](const Descriptor* entry) { return entry->hex == fitting[0]->hex; };
    if (std::ranges::all_of(fitting, same)) return *fitting[0];
    std::string names;
    for (const Descriptor* entry : fitting) {
        if (means(entry->name, reference)) return *entry;
        append_name(names, entry->name);
    }
    return unclear(names);
}

Result<Descriptor> choose_platform(const std::vector<Descriptor>& index) {
    const Descriptor* best = nullptr;
    std::string others;
    for (const Descriptor& entry : index) {
        if (!for_this_platform(entry.os, entry.architecture)) {
            append_name(others, entry.os + "/" + entry.architecture);
        } else if (!best || rank(entry.variant) < rank(best->variant)) {
            best = &entry;
        }
    }
    if (best) return *best;
    return Error(ErrorCode::unsupported,
                 "there is no image for " + std::string(kOsHere) + "/" +
                     std::string(kArchitectureHere) +
                     (others.empty() ? ", the index is empty" : ", only for " + others));
}

Result<DockerManifest> choose(const std::vector<DockerManifest>& manifests,
                              const Reference& reference) {
    if (manifests.empty()) {
        return Error(ErrorCode::invalid_argument, "manifest.json: holds no image");
    }
    if (manifests.size() == 1) return manifests[0];
    std::string names;
    for (const DockerManifest& manifest : manifests) {
        for (const std::string& tag : manifest.tags) {
            if (means(tag, reference)) return manifest;
            append_name(names, tag);
        }
    }
    return unclear(names);
}

}  // namespace opensandbox::image
