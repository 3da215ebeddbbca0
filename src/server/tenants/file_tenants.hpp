#pragma once

#include "net/task.hpp"
#include "server/tenants/tenants.hpp"
#include "server/tenants/tenants_file.hpp"

#include <sys/stat.h>

namespace opensandbox::server {

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
