#include "model/resource_quantity.hpp"
#include "server/config/sections.hpp"

#include <cmath>

namespace opensandbox::server {
namespace {

constexpr double kMaxCores = 1e9;

/// "2", "500m", 2 or 0.5.
void read_cpu(ConfigReader& reader, const std::string& key, std::optional<std::int64_t>& into) {
    const toml::node* found = reader.node(key);
    if (!found) return;
    std::optional<double> cores;
    if (auto text = found->value_exact<std::string>()) {
        cores = model::parse_cpu(*text);
    } else if (found->is_number()) {
        cores = found->value<double>();
    }
    if (!cores || !(*cores >= 0.001 && *cores <= kMaxCores)) {
        reader.fail(key, "must be a number of cores above 0, such as 8 or \"500m\"");
    } else {
        into = std::llround(*cores * 1000);
    }
}

/// "16Gi", or bytes.
void read_memory(ConfigReader& reader, const std::string& key, std::optional<std::int64_t>& into) {
    const toml::node* found = reader.node(key);
    if (!found) return;
    std::optional<std::uint64_t> bytes;
    if (auto text = found->value_exact<std::string>()) {
        bytes = model::parse_memory(*text);
    } else if (auto number = found->value_exact<std::int64_t>(); number && *number > 0) {
        bytes = static_cast<std::uint64_t>(*number);
    }
    if (!bytes || *bytes > INT64_MAX) {
        reader.fail(key, "must be an amount of memory above 0, such as \"16Gi\"");
    } else {
        into = static_cast<std::int64_t>(*bytes);
    }
}

}  // namespace

void read_quota(ConfigReader& reader, const std::string& section, model::Quota& quota) {
    std::string sandboxes = section + ".max_sandboxes";
    if (reader.node(sandboxes)) {
        std::int64_t count = 0;
        reader.number(sandboxes, 0, INT64_MAX, count);
        quota.max_sandboxes = count;
    }
    read_cpu(reader, section + ".max_cpu", quota.max_cpu_millicores);
    read_memory(reader, section + ".max_memory", quota.max_memory_bytes);
}

void read_quotas(ConfigReader& reader, Config& config) {
    read_quota(reader, "quotas", config.quota);
}

void read_tenants(ConfigReader& reader, Config& config) {
    TenantsConfig& tenants = config.tenants;
    tenants.enabled = reader.node("tenants") != nullptr;
    std::string provider = "file";
    reader.text("tenants.provider", provider);
    if (provider == "http") {
        tenants.provider = TenantProvider::http;
    } else if (provider != "file") {
        reader.fail("tenants.provider", "must be file or http");
    }
    reader.text("tenants.endpoint", tenants.endpoint);
    bool http = tenants.provider == TenantProvider::http;
    if (http && !tenants.endpoint.starts_with("http://") &&
        !tenants.endpoint.starts_with("https://")) {
        reader.fail("tenants.endpoint", "must be an http:// or https:// URL");
    }
    reader.number("tenants.max_stale_seconds", 0, 86400, tenants.max_stale_seconds);
    reader.number("tenants.timeout_seconds", 1, 600, tenants.timeout_seconds);
    reader.text("tenants.auth_header", tenants.auth_header);
    reader.text("tenants.auth_token", tenants.auth_token);
    if (tenants.auth_header.empty() != tenants.auth_token.empty())
        reader.fail("tenants.auth_header", "must be set together with tenants.auth_token");
}

}  // namespace opensandbox::server
