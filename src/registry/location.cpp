#include "registry/location.hpp"

#include "image/budget.hpp"

#include <boost/asio/ip/address.hpp>

#include <algorithm>
#include <array>
#include <charconv>

namespace opensandbox::registry {
namespace {

constexpr std::string_view kDefault = "docker.io";
constexpr std::string_view kDefaultHost = "registry-1.docker.io";
constexpr std::array<std::string_view, 3> kDefaultNames{"docker.io", "index.docker.io",
                                                        "registry-1.docker.io"};

bool names_registry(std::string_view component) {
    return component == "localhost" || component.find_first_of(".:[") != std::string_view::npos ||
           std::ranges::any_of(component, [](char c) { return c >= 'A' && c <= 'Z'; });
}

Error wrong(std::string_view name) {
    return {ErrorCode::invalid_argument,
            "registry " + image::in_quotes(name) + ": must be a host name with an optional port"};
}

/// Host and port of "host[:port]" or "[v6][:port]".
Status split(std::string_view name, Location& into) {
    std::string_view host = name;
    std::size_t colon = name.rfind(':');
    std::size_t bracket = name.rfind(']');
    bool has_port =
        colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket);
    if (has_port) {
        std::string_view digits = name.substr(colon + 1);
        auto [end, failure] =
            std::from_chars(digits.data(), digits.data() + digits.size(), into.port);
        if (failure != std::errc() || end != digits.data() + digits.size() || into.port == 0) {
            return wrong(name);
        }
        host = name.substr(0, colon);
    }
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    if (host.empty()) return wrong(name);
    into.host = host;
    return {};
}

}  // namespace

bool is_loopback(std::string_view host) {
    if (host == "localhost") return true;
    boost::system::error_code failure;
    auto address = boost::asio::ip::make_address(std::string(host), failure);
    return !failure && address.is_loopback();
}

Result<Location> locate_registry(std::string_view name) {
    std::string_view given = name;
    for (std::string_view scheme : {"https://", "http://"}) {
        if (name.starts_with(scheme)) name.remove_prefix(scheme.size());
    }
    name = name.substr(0, name.find('/'));
    Location location;
    if (std::ranges::find(kDefaultNames, name) != kDefaultNames.end()) {
        location.registry = kDefault;
        location.host = kDefaultHost;
        return location;
    }
    bool plain = !name.empty() && std::ranges::all_of(name, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '.' || c == '-' || c == ':' || c == '[' || c == ']';
    });
    if (!plain) return wrong(given);
    location.registry = name;
    if (auto ok = split(name, location); !ok) return ok.error();
    location.loopback = is_loopback(location.host);
    return location;
}

Result<Location> locate(const image::Reference& reference) {
    if (reference.is_host()) {
        return Error(ErrorCode::invalid_argument, "image \"host\" is built in, no registry has it");
    }
    std::string_view name = reference.name;
    std::size_t slash = name.find('/');
    bool named = slash != std::string_view::npos && names_registry(name.substr(0, slash));
    auto location = locate_registry(named ? name.substr(0, slash) : kDefault);
    if (!location) return location;
    if (named) name.remove_prefix(slash + 1);
    location->repository = name;
    if (location->registry == kDefault && name.find('/') == std::string_view::npos) {
        location->repository = "library/" + location->repository;
    }
    location->reference = reference.digest.empty() ? reference.tag : reference.digest;
    return location;
}

}  // namespace opensandbox::registry
