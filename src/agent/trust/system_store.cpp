#include "agent/trust/public_file.hpp"
#include "agent/trust/stores.hpp"
#include "trust/certificates.hpp"

#include <openssl/x509.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOwnFiles = "/usr/local/share/ca-certificates";
constexpr const char* kLinks = "/etc/ssl/certs";
constexpr const char* kBundle = "/etc/ssl/certs/ca-certificates.crt";
constexpr const char* kHooks = "/etc/ca-certificates/update.d";
constexpr const char* kFile = "opensandbox-mitmproxy-ca.crt";
constexpr const char* kLink = "opensandbox-mitmproxy-ca.pem";
/// Of names with the same hash.
constexpr int kMaxSameHash = 16;

/// Of Debian and Alpine: links by hash, which are made here, and Java's stores, which are seen to
/// elsewhere.
constexpr std::array<std::string_view, 3> kKnownHooks{"certhash", "jks-keystore", "java-cacerts"};

/// Programs that keep stores of their own in step with this one.
bool has_other_hooks(const std::string& root) {
    std::error_code failure;
    for (const auto& hook : fs::directory_iterator(root + kHooks, failure)) {
        const std::string name = hook.path().filename();
        if (!name.starts_with('.') && std::ranges::find(kKnownHooks, name) == kKnownHooks.end())
            return true;
    }
    return false;
}

bool is_plain_file(const std::string& path) {
    struct stat info{};
    return ::lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

/// The link leads there when this returns true.
bool link_to(const std::string& target, const std::string& path) {
    std::error_code failure;
    if (fs::read_symlink(path, failure) == target) return true;
    return ::symlink(target.c_str(), path.c_str()) == 0;
}

bool link_by_hash(const std::string& directory, unsigned long hash) {
    for (int number = 0; number < kMaxSameHash; ++number) {
        std::array<char, 16> name{};
        std::snprintf(name.data(), name.size(), "/%08lx.%d", hash, number);
        if (link_to(kLink, directory + name.data())) return true;
    }
    return false;
}

bool add_to_bundle(const std::string& path, const std::string& pem) {
    auto text = read_file(path);
    if (!text) return false;
    if (text->find(pem) != std::string::npos) return true;
    if (!text->empty() && !text->ends_with('\n')) *text += '\n';
    return write_public(path, *text + pem);
}

}  // namespace

bool add_to_system_store(const std::string& root, const std::string& pem) {
    const auto read = trust::read_certificates(pem);
    std::error_code failure;
    if (read.empty() || !fs::is_directory(root + kOwnFiles, failure) ||
        !is_plain_file(root + kBundle) || has_other_hooks(root)) {
        return false;
    }
    const std::string file = root + kOwnFiles + "/" + kFile;
    const std::string links = root + kLinks;
    return write_public(file, pem) && add_to_bundle(root + kBundle, pem) &&
           link_to(file, links + "/" + kLink) &&
           link_by_hash(links, X509_subject_name_hash(read.front().get()));
}

}  // namespace opensandbox::agent
