#include "server/tenants/file_tenants.hpp"

#include "base/log.hpp"

namespace opensandbox::server {

FileTenants::FileTenants(asio::any_io_executor executor, std::filesystem::path file,
                         model::Quota default_quota)
    : executor_(std::move(executor)), file_(std::move(file)), default_quota_(default_quota) {}

FileTenants::Mark FileTenants::look() const {
    struct stat status{};
    if (::stat(file_.c_str(), &status) != 0) return {};
    return {true, status.st_ino, status.st_size,
            status.st_mtim.tv_sec * 1'000'000'000LL + status.st_mtim.tv_nsec};
}

Status FileTenants::load() {
    seen_ = look();
    auto table = load_tenants(file_, default_quota_);
    if (!table) return table.error();
    table_ = std::move(table.value());
    return {};
}

void FileTenants::watch(std::chrono::milliseconds interval) {
    net::spawn(executor_, keep_watching(weak_from_this(), interval), "tenants file");
}

void FileTenants::stop() {
    stopped_ = true;
}

Awaitable<void> FileTenants::keep_watching(std::weak_ptr<FileTenants> weak,
                                           std::chrono::milliseconds interval) {
    while (true) {
        co_await net::sleep_for(interval);
        auto self = weak.lock();
        if (!self || self->stopped_) co_return;
        // A stat of one local file; the reading itself happens when somebody has changed it.
        if (self->look() != self->seen_) self->reload();
    }
}

void FileTenants::reload() {
    seen_ = look();
    if (!seen_.there) {
        table_ = TenantTable();
        log::warn("tenants: the file is gone; no key is valid", {{"file", file_.string()}});
        return;
    }
    auto table = load_tenants(file_, default_quota_);
    if (!table) {
        log::error("tenants: the file cannot be used; what it said before stays",
                   {{"error", table.error().message()}});
        return;
    }
    table_ = std::move(table.value());
    log::info("tenants: the file was read again",
              {{"keys", table_.space_of_key.size()}, {"tenants", table_.quota_of_space.size()}});
}

Awaitable<Result<std::string>> FileTenants::authenticate(std::string key) {
    auto found = table_.space_of_key.find(key_digest(key));
    if (found != table_.space_of_key.end()) co_return found->second;
    co_return Error(ErrorCode::unauthenticated, "no tenant has this key");
}

model::Quota FileTenants::quota(std::string_view space) const {
    auto found = table_.quota_of_space.find(space);
    return found == table_.quota_of_space.end() ? default_quota_ : found->second;
}

}  // namespace opensandbox::server
