#include "model/resource_quantity.hpp"
#include "server/config/sections.hpp"

#include <cmath>

namespace opensandbox::server {
namespace {

constexpr double kMaxCores = 1e9;

/// "2", "500m", 2 or 0.5.
void read_cpu(ConfigReader& reader, const Key&, std::string_view path,
              std::optional<std::int64_t>& into) {
    const toml::node* found = reader.node(path);
    if (!found) return;
    std::optional<double> cores;
    if (auto text = found->value_exact<std::string>()) {
        cores = model::parse_cpu(*text);
    } else if (found->is_number()) {
        cores = found->value<double>();
    }
    if (!cores || !(*cores >= 0.001 && *cores <= kMaxCores)) {
        reader.fail(path, "must be a number of cores above 0, such as 8 or \"500m\"");
    } else {
        into = std::llround(*cores * 1000);
    }
}

/// "16Gi", or bytes.
void read_memory(ConfigReader& reader, const Key&, std::string_view path,
                 std::optional<std::int64_t>& into) {
    const toml::node* found = reader.node(path);
    if (!found) return;
    std::optional<std::uint64_t> bytes;
    if (auto text = found->value_exact<std::string>()) {
        bytes = model::parse_memory(*text);
    } else if (auto number = found->value_exact<std::int64_t>(); number && *number > 0) {
        bytes = static_cast<std::uint64_t>(*number);
    }
    if (!bytes || *bytes > INT64_MAX) {
        reader.fail(path, "must be an amount of memory above 0, such as \"16Gi\"");
    } else {
        into = static_cast<std::int64_t>(*bytes);
    }
}

constexpr std::array kQuotaKeys{
    keys::number<&Config::quota, &model::Quota::max_sandboxes>("max_sandboxes", 0, INT64_MAX, "")
        .like("100"),
    keys::value<read_cpu, &Config::quota, &model::Quota::max_cpu_millicores>("max_cpu", "")
        .like("32"),
    keys::value<read_memory, &Config::quota, &model::Quota::max_memory_bytes>("max_memory", "")
        .like("\"64Gi\""),
};

constexpr std::array kProviders{
    keys::Word{"file", TenantProvider::file},
    keys::Word{"http", TenantProvider::http},
};
constexpr std::array kTenantsKeys{
    keys::choice<kProviders, &Config::tenants, &TenantsConfig::provider>(
        "provider", "Or \"http\": `endpoint` is asked with the caller's key."),
    keys::text<&Config::tenants, &TenantsConfig::endpoint>("endpoint", "")
        .like("\"http://127.0.0.1:9000/tenant\""),
    keys::number<&Config::tenants, &TenantsConfig::max_stale_seconds>("max_stale_seconds", 0,
                                                                      86'400, ""),
    keys::number<&Config::tenants, &TenantsConfig::timeout_seconds>("timeout_seconds", 1, 600, ""),
    keys::text<&Config::tenants, &TenantsConfig::auth_header>("auth_header", "")
        .like("\"Authorization\""),
    keys::text<&Config::tenants, &TenantsConfig::auth_token>("auth_token", "").like("\"Bearer …\""),
};

void read_tenants(ConfigReader& reader, Config& config) {
    TenantsConfig& tenants = config.tenants;
    tenants.enabled = reader.node("tenants") != nullptr;
    if (tenants.provider == TenantProvider::http && !tenants.endpoint.starts_with("http://") &&
        !tenants.endpoint.starts_with("https://")) {
        reader.fail("tenants.endpoint", "must be an http:// or https:// URL");
    }
    if (tenants.auth_header.empty() != tenants.auth_token.empty())
        reader.fail("tenants.auth_header", "must be set together with tenants.auth_token");
}

}  // namespace

constinit const Section kTenantsSection{
    .name = "tenants",
    .comment =
        "Several customers, each with keys and sandboxes of its own. The section turns tenants on "
        "and server.api_key off; the keys of `file` are in $SANDBOX_TENANTS_CONFIG_PATH, else in "
        "~/.opensandbox/tenants.toml, which is read again when it changes:\n"
        "  [[tenants]]\n"
        "  name = \"alice\"\n"
        "  namespace = \"team-a\"\n"
        "  api_keys = [\"…\"]\n"
        "  max_sandboxes = 20          # optional, as in [quotas]",
    .keys = kTenantsKeys,
    .read = read_tenants,
    .off = true};
constinit const Section kQuotasSection{
    .name = "quotas",
    .comment =
        "Of every tenant that has none of its own, or of the whole server where there are no "
        "tenants. A create beyond is answered 429. With max_cpu or max_memory every sandbox "
        "must state that limit.",
    .keys = kQuotaKeys};

void read_quota(ConfigReader& reader, const std::string& section, model::Quota& quota) {
    Config said;  // rows fill a Config
    said.quota = quota;
    read_keys(reader, section, kQuotaKeys, said);
    quota = said.quota;
}

}  // namespace opensandbox::server
