#include "server/tenants/tenants.hpp"

#include "http/url.hpp"
#include "server/tenants/file_tenants.hpp"
#include "server/tenants/http_tenants.hpp"

#include <openssl/sha.h>

#include <algorithm>
#include <cstdlib>

namespace opensandbox::server {
namespace {

constexpr std::chrono::seconds kFileInterval{2};

std::filesystem::path usual_file() {
    const char* home = std::getenv("HOME");
    return std::filesystem::path(home ? home : "") / ".opensandbox" / "tenants.toml";
}

}  // namespace

std::string key_digest(std::string_view key) {
    std::string digest(SHA256_DIGEST_LENGTH, '\0');
    SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(),
           reinterpret_cast<unsigned char*>(digest.data()));
    return digest;
}

bool is_namespace(std::string_view text) {
    constexpr std::size_t kMax = 253;
    return !text.empty() && text.size() <= kMax && std::ranges::all_of(text, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
    });
}

Result<std::shared_ptr<Tenants>> make_tenants(asio::any_io_executor executor,
                                              const Config& config) {
    const TenantsConfig& wanted = config.tenants;
    if (wanted.provider == TenantProvider::file) {
        auto file = wanted.file.empty() ? usual_file() : wanted.file;
        auto tenants = std::make_shared<FileTenants>(std::move(executor), file, config.quota);
        if (auto loaded = tenants->load(); !loaded) return loaded.error();
        tenants->watch(kFileInterval);
        return std::shared_ptr<Tenants>(std::move(tenants));
    }
    auto url = http::parse_url(wanted.endpoint);
    if (!url) return url.error().within("tenants.endpoint");
    return std::shared_ptr<Tenants>(
        std::make_shared<HttpTenants>(std::move(executor), std::move(url.value()), config));
}

}  // namespace opensandbox::server
