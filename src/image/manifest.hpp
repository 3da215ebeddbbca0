#pragma once

#include "image/reference.hpp"
#include "image/store.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// The JSON documents of image archives. Sizes are limited by the reader (`kLargestDocument`),
/// depth by json::parse; every error names the document's member.
namespace opensandbox::image {

/// OCI asks that registries take manifests up to 4 MiB; nothing larger is an honest document.
inline constexpr std::size_t kLargestDocument = std::size_t{4} << 20;
/// What overlayfs and other engines can stack with ease.
inline constexpr std::size_t kMostLayers = 256;

/// Points to a blob by digest and size.
struct Descriptor {
    std::string media_type;
    std::string hex;  ///< of its sha256 digest
    std::uint64_t size = 0;
    std::string os;            ///< empty: not stated
    std::string architecture;  ///< likewise
    std::string variant;       ///< likewise: "v8"
    std::string name;          ///< from annotations: the reference or only the tag
};

struct ImageManifest {
    Descriptor config;
    std::vector<Descriptor> layers;  ///< lowest first
};

/// The image config (application/vnd.oci.image.config.v1+json or Docker's).
struct ConfigDocument {
    std::string os;
    std::string architecture;
    std::vector<std::string> diff_ids;  ///< hex, lowest first
    ImageConfig config;
};

/// One image of a docker-save archive's manifest.json.
struct DockerManifest {
    std::string config;               ///< member of the archive
    std::vector<std::string> tags;    ///< "name:tag"
    std::vector<std::string> layers;  ///< members, lowest first
};

bool is_index(const Descriptor& descriptor);
/// A tar layer, whatever its compression. Others (encrypted ones) cannot be unpacked.
bool is_layer(const Descriptor& descriptor);

Result<std::vector<Descriptor>> parse_index(std::string_view text);
Result<ImageManifest> parse_manifest(std::string_view text);
Result<ConfigDocument> parse_config(std::string_view text);
Result<std::vector<DockerManifest>> parse_docker_manifest(std::string_view text);

/// GOARCH of this machine: "amd64" or "arm64".
std::string_view machine_architecture();

/// The entry to follow: those for another platform are left out; of several the one whose name is
/// the reference (or its tag). `unsupported` when none is for this platform, `invalid_argument`
/// when it is not clear which one is meant.
Result<Descriptor> choose(const std::vector<Descriptor>& index, const Reference& reference);
Result<DockerManifest> choose(const std::vector<DockerManifest>& manifests,
                              const Reference& reference);
/// The entry of a registry's index that this machine runs best: the plainest variant of its
/// architecture. `unsupported` names what there is instead.
Result<Descriptor> choose_platform(const std::vector<Descriptor>& index);
/// Whether a document is an index by what it holds, for those that do not say.
bool looks_like_index(std::string_view text);
/// `unsupported` when the image says that it is for another platform.
Status check_platform(const std::string& os, const std::string& architecture);

}  // namespace opensandbox::image
