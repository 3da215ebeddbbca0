#include "server/config/sections.hpp"

#include <algorithm>
#include <array>

namespace opensandbox::server {
namespace {

constexpr std::array<const Section*, 24> kSections{&kServerSection,
                                                   &kProxySection,
                                                   &kLogSection,
                                                   &kRuntimeSection,
                                                   &kNativeSection,
                                                   &kSecureRuntimeSection,
                                                   &kRegistrySection,
                                                   &kMetricsSection,
                                                   &kPoolSection,
                                                   &kWarmSection,
                                                   &kWarmImageSection,
                                                   &kStorageSection,
                                                   &kStoreSection,
                                                   &kIngressSection,
                                                   &kRenewSection,
                                                   &kRenewRedisSection,
                                                   &kEgressSection,
                                                   &kUpstreamProxySection,
                                                   &kEgressEnvironmentSection,
                                                   &kOtelSection,
                                                   &kTenantsSection,
                                                   &kQuotasSection,
                                                   &kDockerSection,
                                                   &kKubernetesSection};

}  // namespace

std::span<const Section* const> config_sections() {
    return kSections;
}

void read_keys(ConfigReader& reader, std::string_view section, std::span<const Key> keys,
               Config& config) {
    for (const Key& key : keys) {
        if (key.read)
            key.read(reader, key, std::string(section) + "." + std::string(key.name), config);
    }
}

bool is_absolute(std::string_view path) {
    return path.starts_with('/');
}

bool is_absolute_or_empty(std::string_view path) {
    return path.empty() || is_absolute(path);
}

bool is_ipv4(std::string_view text) {
    int parts = 0;
    while (true) {
        auto dot = text.find('.');
        std::string_view part = text.substr(0, dot);
        bool digits = !part.empty() && part.size() <= 3 &&
                      std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
        if (!digits || std::stoi(std::string(part)) > 255) return false;
        ++parts;
        if (dot == std::string_view::npos) return parts == 4;
        text.remove_prefix(dot + 1);
    }
}

}  // namespace opensandbox::server
