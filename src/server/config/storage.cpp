#include "server/config/sections.hpp"

#include <algorithm>

namespace opensandbox::server {
namespace {

void read_host_paths(ConfigReader& reader, const Key&, std::string_view path,
                     std::vector<std::string>& into) {
    reader.texts(path, into);
    if (!std::ranges::all_of(into, is_absolute)) reader.fail(path, "must hold absolute paths");
}

constexpr std::array kStorageKeys{
    keys::value<read_host_paths, &Config::allowed_host_paths>(
        "allowed_host_paths",
        "Absolute paths of the host that volumes of sandboxes may lie in; none by default."),
    keys::text<&Config::kubernetes, &runtime::kubernetes::KubernetesOptions::claim_size>(
        "volume_default_size", "With kubernetes: of claims that a request makes without a size."),
    keys::text<&Config::docker, &runtime::docker::DockerOptions::ossfs_mount_root>(
        "ossfs_mount_root", "Where buckets are mounted under Docker.")
        .must(is_absolute, "must be an absolute path"),
};

constexpr std::array kStores{keys::Word{"sqlite", true}};
constexpr std::array kStoreKeys{
    keys::choice<kStores>("type", ""),
    keys::file<&Config::store_path>("path", "In the state directory by default.")
        .like("\"/var/lib/opensandbox/opensandbox.db\""),
};

}  // namespace

constinit const Section kStorageSection{.name = "storage", .keys = kStorageKeys};
constinit const Section kStoreSection{.name = "store", .keys = kStoreKeys};

}  // namespace opensandbox::server
