#include "runtime/docker/engine/registry_auth.hpp"

#include "json/document.hpp"

#include <cstdint>

namespace opensandbox::runtime::docker {
namespace {

/// RFC 4648 section 5, with padding, which Go's decoder insists on.
std::string url_safe_base64(std::string_view bytes) {
    constexpr std::string_view kDigits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    std::string text;
    text.reserve((bytes.size() + 2) / 3 * 4);
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        std::string_view group = bytes.substr(i, 3);
        std::uint32_t bits = 0;
        for (std::size_t j = 0; j < 3; ++j) {
            bits = bits << 8U | (j < group.size() ? static_cast<unsigned char>(group[j]) : 0U);
        }
        for (std::size_t j = 0; j < 4; ++j) {
            text += j <= group.size() ? kDigits[bits >> (18U - 6U * j) & 0x3fU] : '=';
        }
    }
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
    return url_safe_base64(json::serialize(document));
}

}  // namespace opensandbox::runtime::docker
