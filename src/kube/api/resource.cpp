#include "kube/api/resource.hpp"

#include "http/message.hpp"

namespace opensandbox::kube {

std::string to_string(const ObjectKey& key) {
    return key.name_space.empty() ? key.name : key.name_space + "/" + key.name;
}

std::string api_version(const Resource& resource) {
    if (resource.group.empty()) return std::string(resource.version);
    return std::string(resource.group) + "/" + std::string(resource.version);
}

std::string collection_path(const Resource& resource, std::string_view name_space) {
    std::string path = resource.group.empty() ? "/api/" : "/apis/";
    path += api_version(resource);
    if (resource.namespaced && !name_space.empty())
        path += "/namespaces/" + http::percent_encode(name_space);
    return path + "/" + std::string(resource.plural);
}

std::string object_path(const Resource& resource, const ObjectKey& key,
                        std::string_view subresource) {
    std::string path =
        collection_path(resource, key.name_space) + "/" + http::percent_encode(key.name);
    if (!subresource.empty()) path += "/" + std::string(subresource);
    return path;
}

}  // namespace opensandbox::kube
