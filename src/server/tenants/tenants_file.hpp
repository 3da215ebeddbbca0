#pragma once

#include "base/error.hpp"
#include "model/quota.hpp"

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

/// `tenants.toml`: `[[tenants]] name, namespace, api_keys[]` and optionally a quota. Pure.
namespace opensandbox::server {

/// What the file says, by digest of key and by namespace.
struct TenantTable {
    TenantTable() = default;
    std::unordered_map<std::string, std::string> space_of_key;
    std::map<std::string, model::Quota, std::less<>> quota_of_space;
};

/// The error names every row and rule it breaks. `default_quota` counts where a row says nothing.
Result<TenantTable> parse_tenants(std::string_view toml, std::string_view source,
                                  const model::Quota& default_quota);

/// Reads a file of at most 4 MiB.
Result<TenantTable> load_tenants(const std::filesystem::path& file,
                                 const model::Quota& default_quota);

}  // namespace opensandbox::server
