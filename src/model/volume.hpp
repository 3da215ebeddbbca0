#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

/// Volumes of a create request (lifecycle 2.8), after the schema was checked.
namespace opensandbox::model {

/// A directory or file of the server's host.
struct HostVolume {
    std::string path;
};

/// A named volume that outlives sandboxes.
struct ClaimVolume {
    std::string claim_name;
    bool create_if_missing = true;
    bool delete_with_sandbox = false;  ///< only when this very request made it
    std::optional<std::string> storage_class;
    std::optional<std::string> storage;  ///< "10Gi"
    std::vector<std::string> access_modes;
};

/// A bucket of an object store, mounted through ossfs.
struct BucketVolume {
    std::string bucket;
    std::string endpoint;
    std::string version = "2.0";  ///< "1.0" or "2.0"
    std::vector<std::string> options;
    std::string access_key_id;
    std::string access_key_secret;
};

struct Volume {
    std::string name;
    std::string mount_path;  ///< absolute, inside the sandbox
    bool read_only = false;
    std::string sub_path;  ///< relative, below the volume's root
    std::variant<HostVolume, ClaimVolume, BucketVolume> backend;
};

/// "host", "pvc" or "ossfs": the field of the request that chose the backend.
inline std::string_view backend_name(const Volume& volume) {
    constexpr std::string_view kNames[] = {"host", "pvc", "ossfs"};
    return kNames[volume.backend.index()];
}

}  // namespace opensandbox::model
