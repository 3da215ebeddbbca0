#include "lifecycle/admission_checks.hpp"
#include "model/field_rule.hpp"
#include "model/resource_quantity.hpp"

#include <algorithm>
#include <array>

namespace opensandbox::lifecycle {
namespace {

constexpr std::size_t kMaxLabel = 63;
constexpr std::size_t kMaxPublished = 16;
constexpr std::int64_t kMaxPort = 65'535;
constexpr std::int64_t kAgentPort = 44'772;
constexpr std::size_t kMaxMemoryVolumes = 8;
constexpr std::uint64_t kLeastMemoryVolume = 64 << 10;

bool is_dns_label(std::string_view text) {
    auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
    return !text.empty() && text.size() <= kMaxLabel && plain(text.front()) && plain(text.back()) &&
           std::ranges::all_of(text, [&](char c) { return plain(c) || c == '-'; });
}

std::string_view trimmed(std::string_view text) {
    while (text.starts_with(' '))
        text.remove_prefix(1);
    while (text.ends_with(' '))
        text.remove_suffix(1);
    return text;
}

std::vector<std::string_view> split_list(std::string_view text) {
    std::vector<std::string_view> items;
    while (true) {
        const std::size_t comma = text.find(',');
        items.push_back(trimmed(text.substr(0, comma)));
        if (comma == std::string_view::npos) return items;
        text.remove_prefix(comma + 1);
    }
}

Error refuse(std::string_view extension, std::string_view value, std::string_view rule) {
    return invalid_parameter("extensions." + std::string(extension) + ": '" + std::string(value) +
                             "' " + std::string(rule));
}

Status read_ports(const std::string& text, std::vector<std::uint16_t>& into) {
    for (std::string_view item : split_list(text)) {
        const auto port = model::lax_integer(item);
        if (!port || *port < 1 || *port > kMaxPort || *port == kAgentPort) {
            return refuse(kPublishExtension, item,
                          "must be a port from 1 to 65535 other than 44772, which is published "
                          "anyway.");
        }
        const auto number = static_cast<std::uint16_t>(*port);
        if (std::ranges::count(into, number) > 0) {
            return refuse(kPublishExtension, item, "must not be named twice.");
        }
        into.push_back(number);
    }
    if (into.size() <= kMaxPublished) return {};
    return refuse(kPublishExtension, text, "must name at most 16 ports.");
}

/// What the kernel shows there is the sandbox's own and no place for files.
bool is_mount_path(std::string_view path) {
    const std::string framed = std::string(path) + "/";
    if (!path.starts_with('/') || path.size() < 2 || path.find('\0') != std::string_view::npos)
        return false;
    if (framed.find("/../") != std::string::npos || framed.find("/./") != std::string::npos ||
        framed.find("//") != std::string::npos) {
        return false;
    }
    return std::ranges::none_of(std::array<std::string_view, 3>{"/proc/", "/sys/", "/dev/"},
                                [&](std::string_view place) { return framed.starts_with(place); });
}

}  // namespace

Result<runtime::NetworkChoice> network_choice(const model::CreateRequest& request,
                                              const AdmissionRules& rules) {
    runtime::NetworkChoice choice;
    for (std::string_view key : {kNetworkExtension, kHostnameExtension, kPublishExtension}) {
        const std::string* value = find_value(request.extensions, key);
        if (value && !rules.capabilities.networks) {
            return lacking("extensions." + std::string(key), rules);
        }
    }
    if (const std::string* text = find_value(request.extensions, kNetworkExtension)) {
        if (!is_dns_label(*text)) {
            return refuse(kNetworkExtension, *text,
                          "must be default, none, or the name of a network: 1 to 63 of a-z, 0-9 "
                          "and inner hyphens.");
        }
        choice.chosen = true;
        choice.none = *text == "none";
        if (*text != "none" && *text != "default") choice.shared = *text;
    }
    if (const std::string* text = find_value(request.extensions, kHostnameExtension)) {
        if (!is_dns_label(*text) || *text == "localhost") {
            return refuse(kHostnameExtension, *text,
                          "must be 1 to 63 of a-z, 0-9 and inner hyphens, and not localhost.");
        }
        choice.hostname = *text;
    }
    if (const std::string* text = find_value(request.extensions, kPublishExtension)) {
        if (auto ok = read_ports(*text, choice.published); !ok) return ok.error();
    }
    return choice;
}

Result<std::vector<runtime::MemoryVolume>> memory_volumes(const model::CreateRequest& request,
                                                          const AdmissionRules& rules) {
    std::vector<runtime::MemoryVolume> volumes;
    const std::string* text = find_value(request.extensions, kMemoryExtension);
    if (!text) return volumes;
    if (!rules.capabilities.memory_volumes) {
        return lacking("extensions." + std::string(kMemoryExtension), rules);
    }
    for (std::string_view item : split_list(*text)) {
        const std::size_t equals = item.rfind('=');
        const std::string path(item.substr(0, equals));
        const auto size = equals == std::string_view::npos
                              ? std::nullopt
                              : model::parse_memory(item.substr(equals + 1));
        if (!is_mount_path(path) || !size || *size < kLeastMemoryVolume ||
            *size > model::kMostMemory) {
            return refuse(kMemoryExtension, item,
                          "must be an absolute path, outside /proc, /sys and /dev and without '.' "
                          "or '..', then = and a size of 64Ki to 1024Ti.");
        }
        const bool twice = std::ranges::any_of(
            volumes, [&](const runtime::MemoryVolume& other) { return other.mount_path == path; });
        if (twice) return refuse(kMemoryExtension, item, "must not name a path twice.");
        volumes.emplace_back(path, *size);
    }
    if (volumes.size() <= kMaxMemoryVolumes) return volumes;
    return refuse(kMemoryExtension, *text, "must name at most 8 paths.");
}

}  // namespace opensandbox::lifecycle
