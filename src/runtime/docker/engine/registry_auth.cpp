#include "base/base64.hpp"
#include "json/document.hpp"
#include "runtime/docker/engine/image.hpp"

namespace opensandbox::runtime::docker {
namespace {

/// With padding, which Go's decoder insists on.
std::string padded_base64url(std::string_view bytes) {
    std::string text = to_base64url(bytes);
    text.resize((text.size() + 3) / 4 * 4, '=');
    return text;
}

/// "docker.io" unless the reference begins with a registry.
std::string registry_of(std::string_view image) {
    std::size_t slash = image.find('/');
    if (slash == std::string_view::npos) return "docker.io";
    std::string_view first = image.substr(0, slash);
    bool registry = first == "localhost" || first.find_first_of(".:") != std::string_view::npos;
    return std::string(registry ? first : "docker.io");
}

}  // namespace

PullReference split_reference(std::string_view image) {
    PullReference reference;
    std::size_t at = image.find('@');
    std::string_view name = image.substr(0, at);
    std::size_t slash = name.rfind('/');
    std::size_t begin = slash == std::string_view::npos ? 0 : slash + 1;
    std::size_t colon = name.find(':', begin);
    reference.name = name.substr(0, colon);
    if (at != std::string_view::npos) {
        reference.tag = image.substr(at + 1);
    } else {
        reference.tag = colon == std::string_view::npos ? "latest" : name.substr(colon + 1);
    }
    return reference;
}

std::string registry_auth_header(const RegistryAuth& auth, std::string_view image) {
    std::string registry = registry_of(image);
    // Docker's own name for its registry, under which its clients keep credentials.
    if (registry == "docker.io") registry = "https://index.docker.io/v1/";
    json::object document;
    document["username"] = auth.username;
    document["password"] = auth.password;
    document["serveraddress"] = auth.server_address.empty() ? registry : auth.server_address;
    return padded_base64url(json::serialize(document));
}

}  // namespace opensandbox::runtime::docker
