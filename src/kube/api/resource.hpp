#pragma once

#include <string>
#include <string_view>

namespace opensandbox::kube {

/// A kind of object, as the API server serves it.
struct Resource {
    std::string_view group;  ///< empty: the core of the API
    std::string_view version;
    std::string_view plural;
    std::string_view kind;
    bool namespaced = true;
};

inline constexpr Resource kPods{"", "v1", "pods", "Pod"};
inline constexpr Resource kSecrets{"", "v1", "secrets", "Secret"};
inline constexpr Resource kNamespaces{"", "v1", "namespaces", "Namespace", false};
inline constexpr Resource kLeases{"coordination.k8s.io", "v1", "leases", "Lease"};

/// Which object; a cluster-wide one has no namespace.
struct ObjectKey {
    std::string name_space;
    std::string name;

    auto operator<=>(const ObjectKey&) const = default;
};

/// "namespace/name", or the name alone, for messages and logs.
std::string to_string(const ObjectKey& key);

/// "v1", "coordination.k8s.io/v1": what objects carry as apiVersion.
std::string api_version(const Resource& resource);

/// The path of a collection: of one namespace, or of all when `name_space` is empty.
std::string collection_path(const Resource& resource, std::string_view name_space);

/// The path of one object, with "/status" and the like when `subresource` is not empty.
std::string object_path(const Resource& resource, const ObjectKey& key,
                        std::string_view subresource = {});

}  // namespace opensandbox::kube
