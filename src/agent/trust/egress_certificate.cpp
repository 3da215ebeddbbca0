#include "agent/trust/egress_certificate.hpp"

#include "agent/files/replacement_file.hpp"
#include "agent/process/spawn.hpp"
#include "agent/trust/public_file.hpp"
#include "agent/trust/stores.hpp"
#include "base/log.hpp"
#include "trust/certificates.hpp"
#include "trust/java_trust_store.hpp"

#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <signal.h>
#include <time.h>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPoll{200};
constexpr std::chrono::seconds kToolLimit{60};

constexpr std::array kBundles{
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
};

void set_if_unset(Environment& environment, const char* name, const std::string& value) {
    if (!environment.get(name)) environment.set(name, value);
}

bool exists(const std::string& path) {
    return ::access(path.c_str(), F_OK) == 0;
}

/// The certificates that come with Python, if it has them.
std::optional<std::string> certifi_bundle(const std::string& library) {
    std::error_code failure;
    for (const auto& entry : std::filesystem::directory_iterator(library, failure)) {
        if (!entry.path().filename().native().starts_with("python3")) continue;
        for (const char* packages : {"/site-packages", "/dist-packages"}) {
            std::string path = entry.path().native() + packages + "/certifi/cacert.pem";
            if (exists(path)) return path;
        }
    }
    return std::nullopt;
}

bool has_tool(std::string_view name, const Environment& environment) {
    return std::ranges::any_of(search_path(name, environment.get("PATH")), exists);
}

/// Runs a program of PATH to its end, with `sudo -n` when that is needed; whether it succeeded.
bool run_tool(std::vector<std::string> argv, const Environment& environment, bool as_root) {
    if (!has_tool(argv.front(), environment)) return false;
    if (as_root && ::geteuid() != 0) {
        if (!has_tool("sudo", environment)) return false;
        argv.insert(argv.begin(), {"sudo", "-n"});
    }
    SpawnRequest request;
    request.environment = environment.entries();
    request.programs.push_back(program_of(std::move(argv), environment.get("PATH")));
    Result<pid_t> pid = spawn(request);
    if (!pid) return false;
    auto limit = steady_clock::now() + kToolLimit;
    int status = 0;
    while (::waitpid(*pid, &status, WNOHANG) == 0) {
        if (steady_clock::now() > limit) ::kill(-*pid, SIGKILL);
        timespec pause{0, 20'000'000};
        ::nanosleep(&pause, nullptr);
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

bool EgressCertificate::wanted(const Environment& environment) {
    std::string value(environment.get("OPENSANDBOX_EGRESS_MITMPROXY_TRANSPARENT").value_or(""));
    for (char& c : value) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return value == "1" || value == "true" || value == "yes" || value == "on";
}

std::string EgressCertificate::certificate() const {
    return root_ + "/opt/opensandbox/mitmproxy-ca-cert.pem";
}
std::string EgressCertificate::merged() const {
    return root_ + "/opt/opensandbox/merged-ca-certificates.pem";
}

bool EgressCertificate::wait(std::chrono::milliseconds limit) const {
    sigset_t ending;
    ::sigemptyset(&ending);
    ::sigaddset(&ending, SIGTERM);
    ::sigaddset(&ending, SIGINT);
    auto end = steady_clock::now() + limit;
    while (true) {
        struct stat info{};
        if (::stat(certificate().c_str(), &info) == 0 && info.st_size > 0) return true;
        if (steady_clock::now() >= end) return false;
        timespec pause{0, std::chrono::nanoseconds(kPoll).count()};
        int number = ::sigtimedwait(&ending, nullptr, &pause);
        if (number > 0) {
            // For whoever reads signals next.
            ::raise(number);
            return false;
        }
    }
}

bool EgressCertificate::place(const std::string& pem) const {
    return write_public(certificate(), pem);
}

std::string EgressCertificate::public_bundle() const {
    for (const char* library : {"/usr/local/lib", "/usr/lib"}) {
        if (auto path = certifi_bundle(root_ + library)) return *path;
    }
    for (const char* path : kBundles) {
        if (exists(root_ + path)) return root_ + path;
    }
    return {};
}

bool EgressCertificate::merge() const {
    std::string bundle = public_bundle();
    auto own = read_file(certificate());
    if (bundle.empty() || !own) return false;
    auto text = read_file(bundle);
    if (!text) return false;
    if (!text->empty() && !text->ends_with('\n')) *text += '\n';
    return write_public(merged(), *text + *own);
}

bool EgressCertificate::install(const Environment& environment) const {
    const auto own = read_file(certificate());
    if (own && add_to_system_store(root_, *own)) return true;
    struct Store {
        const char* directory;
        const char* file;
        std::vector<std::string> refresh;
    };
    const std::array<Store, 2> stores{Store{"/usr/local/share/ca-certificates",
                                            "/opensandbox-mitmproxy-ca.crt",
                                            {"update-ca-certificates"}},
                                      Store{"/etc/pki/ca-trust/source/anchors",
                                            "/opensandbox-mitmproxy-ca.pem",
                                            {"update-ca-trust", "extract"}}};
    for (const Store& store : stores) {
        std::string directory = root_ + store.directory;
        std::string target = directory + store.file;
        std::vector<std::string> copy{"cp", certificate(), target};
        bool placed = exists(directory) && own &&
                      (write_public(target, *own) || run_tool(copy, environment, true));
        if (placed && run_tool(store.refresh, environment, true)) return true;
    }
    log::warn("the egress certificate is not in the system's store");
    return false;
}

void EgressCertificate::import_into_nss(const Environment& environment) const {
    std::string home(environment.get("HOME").value_or(""));
    if (home.empty() || !has_tool("certutil", environment)) return;
    std::string directory = root_ + home + "/.pki/nssdb";
    std::string database = "sql:" + directory;
    if (!exists(directory + "/cert9.db")) {
        if (!make_directories(directory)) return;
        if (!run_tool({"certutil", "-N", "-d", database, "--empty-password"}, environment, false)) {
            return;
        }
    }
    run_tool({"certutil", "-A", "-d", database, "-t", "C,,", "-n", "opensandbox-mitmproxy", "-i",
              certificate()},
             environment, false);
}

/// What these read replaces their own roots, which the bundle has as well.
void EgressCertificate::name_bundle(Environment& environment, bool installed) const {
    for (const char* name : {"CURL_CA_BUNDLE", "PIP_CERT", "GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO",
                             "npm_config_cafile", "AWS_CA_BUNDLE"}) {
        set_if_unset(environment, name, merged());
    }
    // wget reads no variable but this one, which hides what the user has.
    const std::string settings = root_ + "/opt/opensandbox/wgetrc";
    if (!installed && write_public(settings, "ca_certificate = " + merged() + "\n")) {
        set_if_unset(environment, "WGETRC", settings);
    }
}

void EgressCertificate::trust_in_java(Environment& environment) const {
    const auto stores = java_stores(root_, environment);
    const auto own = read_file(certificate());
    if (stores.empty() || !own || add_to_java_stores(stores, *own)) return;
    std::string options(environment.get("JAVA_TOOL_OPTIONS").value_or(""));
    if (options.find("javax.net.ssl.trustStore") != std::string::npos) return;
    const std::string path = root_ + "/opt/opensandbox/merged-ca-certificates.p12";
    const auto bundle = read_file(merged());
    if (!bundle) return;
    const auto store =
        trust::make_java_trust_store(trust::read_certificates(*bundle), kJavaStorePassword);
    if (!store || !write_public(path, *store)) {
        log::warn("Java does not trust the egress certificate");
        return;
    }
    options += (options.empty() ? "" : " ") + ("-Djavax.net.ssl.trustStore=" + path) +
               " -Djavax.net.ssl.trustStoreType=PKCS12 -Djavax.net.ssl.trustStorePassword=" +
               kJavaStorePassword;
    environment.set("JAVA_TOOL_OPTIONS", options);
}

void EgressCertificate::trust(Environment& environment) const {
    const bool installed = install(environment);
    import_into_nss(environment);
    bool whole = merge();
    if (!whole) log::warn("programs trust the egress certificate alone: there is no other bundle");
    environment.set("NODE_EXTRA_CA_CERTS", certificate());
    environment.set("REQUESTS_CA_BUNDLE", whole ? merged() : certificate());
    environment.set("SSL_CERT_FILE", whole ? merged() : certificate());
    set_if_unset(environment, "DENO_CERT", certificate());
    if (!whole) return;
    name_bundle(environment, installed);
    trust_in_java(environment);
}

}  // namespace opensandbox::agent
