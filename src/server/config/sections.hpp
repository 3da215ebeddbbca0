#pragma once

#include "server/config/config.hpp"
#include "server/config/key.hpp"
#include "server/config/reader.hpp"

#include <span>
#include <string>
#include <string_view>

/// The table of the configuration: sections, and a row for each of their keys.
namespace opensandbox::server {

struct Section {
    std::string_view name{};
    std::string_view comment{};
    std::span<const Key> keys{};
    /// What the rows do not read, and what follows from several of them, before the next section.
    void (*read)(ConfigReader& reader, Config& config) = nullptr;
    /// What depends on other sections, once all are read.
    void (*check)(ConfigReader& reader, Config& config) = nullptr;
    /// The header alone means something, or names an example: the skeleton comments it out.
    bool off = false;
};

// Each in the file of its subject.
extern const Section kServerSection;
extern const Section kProxySection;
extern const Section kLogSection;
extern const Section kRuntimeSection;
extern const Section kNativeSection;
extern const Section kSecureRuntimeSection;
extern const Section kRegistrySection;
extern const Section kMetricsSection;
extern const Section kPoolSection;
extern const Section kWarmSection;
extern const Section kWarmImageSection;
extern const Section kStorageSection;
extern const Section kStoreSection;
extern const Section kIngressSection;
extern const Section kRenewSection;
extern const Section kRenewRedisSection;
extern const Section kEgressSection;
extern const Section kUpstreamProxySection;
extern const Section kEgressEnvironmentSection;
extern const Section kOtelSection;
extern const Section kTenantsSection;
extern const Section kQuotasSection;
extern const Section kDockerSection;
extern const Section kKubernetesSection;

/// All of them, in the order of the skeleton and of reading.
std::span<const Section* const> config_sections();

/// Reads `keys` as those of the table at `section`.
void read_keys(ConfigReader& reader, std::string_view section, std::span<const Key> keys,
               Config& config);

/// The keys of a quota under `section` ("quotas", or a row of the tenants file).
void read_quota(ConfigReader& reader, const std::string& section, model::Quota& quota);

bool is_absolute(std::string_view path);
bool is_absolute_or_empty(std::string_view path);
/// Four numbers of 0 to 255.
bool is_ipv4(std::string_view text);

}  // namespace opensandbox::server
