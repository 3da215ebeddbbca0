#pragma once

#include "base/error.hpp"
#include "model/quota.hpp"
#include "net/task.hpp"
#include "server/tenants/tenants.hpp"

#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

namespace opensandbox::server {

/// What `tenants.toml` says (`[[tenants]] name, namespace, api_keys[]` and optionally a quota), by
/// digest of key and by namespace.
struct TenantTable {
    std::unordered_map<std::string, std::string> space_of_key;
    std::map<std::string, model::Quota, std::less<>> quota_of_space;
};

/// The error names every row and rule it breaks. `default_quota` counts where a row says nothing.
/// Pure.
Result<TenantTable> parse_tenants(std::string_view toml, std::string_view source,
                                  const model::Quota& default_quota);

/// Reads a file of at most 4 MiB.
Result<TenantTable> load_tenants(const std::filesystem::path& file,
                                 const model::Quota& default_quota);

/// Tenants of a file, which is read again when it changes: a broken one keeps what was, a missing
/// one leaves nobody.
class FileTenants final : public Tenants, public std::enable_shared_from_this<FileTenants> {
  public:
    FileTenants(asio::any_io_executor executor, std::filesystem::path file,
                model::Quota default_quota);

    /// The first reading; must succeed.
    Status load();
    /// Looks at the file every `interval` until stop().
    void watch(std::chrono::milliseconds interval);

    Awaitable<Result<std::string>> authenticate(std::string key) override;
    [[nodiscard]] model::Quota quota(std::string_view space) const override;
    void stop() override;

  private:
    /// What tells one state of the file from another.
    struct Mark {
        bool there = false;
        ino_t inode = 0;
        off_t size = 0;
        std::int64_t changed = 0;
        friend bool operator==(const Mark&, const Mark&) = default;
    };
    [[nodiscard]] Mark look() const;
    void reload();
    static Awaitable<void> keep_watching(std::weak_ptr<FileTenants> weak,
                                         std::chrono::milliseconds interval);

    asio::any_io_executor executor_;
    std::filesystem::path file_;
    model::Quota default_quota_;
    TenantTable table_;
    Mark seen_;
    bool stopped_ = false;
};

}  // namespace opensandbox::server
