#include "agent/process/spawn.hpp"
#include "agent/trust/public_file.hpp"
#include "agent/trust/stores.hpp"
#include "trust/certificates.hpp"
#include "trust/java_trust_store.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

namespace opensandbox::agent {
namespace {

namespace fs = std::filesystem;

/// As ca-certificates-java names what it takes from the system's store: it replaces this by that.
constexpr const char* kAlias = "debian:opensandbox-mitmproxy-ca.pem";

/// The folder above the bin that `java` of PATH is in; empty without one.
std::string home_in_path(const Environment& environment) {
    for (const std::string& path : search_path("java", environment.get("PATH"))) {
        std::error_code failure;
        const fs::path program = fs::canonical(path, failure);
        if (!failure) return program.parent_path().parent_path();
    }
    return {};
}

/// The JDK's own, or that of the runtime within it.
std::string store_of(const std::string& home) {
    const std::string in_runtime = home + "/jre/lib/security/cacerts";
    std::error_code failure;
    return fs::exists(in_runtime, failure) ? in_runtime : home + "/lib/security/cacerts";
}

bool add_to(const std::string& path, const std::string& pem) {
    const auto certificates = trust::read_certificates(pem);
    const auto store = read_file(path);
    if (certificates.empty() || !store) return false;
    if (trust::java_store_holds(*store, certificates.front())) return true;
    const auto made = trust::add_to_java_store(
        *store, certificates.front(), kAlias, kJavaStorePassword, std::chrono::system_clock::now());
    return made && write_public(path, *made);
}

}  // namespace

std::vector<std::string> java_stores(const std::string& root, const Environment& environment) {
    std::vector<std::string> stores;
    for (const std::string& home :
         {std::string(environment.get("JAVA_HOME").value_or("")), home_in_path(environment)}) {
        if (home.empty()) continue;
        std::string store = store_of(root + home);
        if (std::ranges::find(stores, store) == stores.end()) stores.push_back(std::move(store));
    }
    return stores;
}

bool add_to_java_stores(const std::vector<std::string>& stores, const std::string& pem) {
    return std::ranges::all_of(stores, [&](const std::string& path) { return add_to(path, pem); });
}

}  // namespace opensandbox::agent
