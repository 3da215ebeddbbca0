#include "runtime/docker/engine/address.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <unistd.h>

namespace opensandbox::runtime::docker {
namespace {

constexpr std::array<std::string_view, 2> kDefaultSockets{"/var/run/docker.sock",
                                                          "/run/podman/podman.sock"};
constexpr std::size_t kMaxSocketPath = 107;
constexpr std::uint16_t kPlainPort = 2375;
constexpr std::uint16_t kTlsPort = 2376;

Error wrong(const std::string& value, std::string_view rule) {
    constexpr std::size_t kShown = 200;
    return {ErrorCode::invalid_argument,
            "DOCKER_HOST=" + value.substr(0, kShown) + ": " + std::string(rule)};
}

bool is_clean(std::string_view text) {
    return std::ranges::all_of(text, [](char c) {
        auto byte = static_cast<unsigned char>(c);
        return byte > ' ' && byte != 0x7f;
    });
}

std::optional<std::uint16_t> parse_port(std::string_view digits) {
    std::uint16_t port = 0;
    auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    bool whole = failure == std::errc() && end == digits.data() + digits.size();
    if (!whole || port == 0) return std::nullopt;
    return port;
}

/// host, host:port, [address], [address]:port; the reason when it is none of them. The port stays
/// 0 when it is not there.
std::string_view split_host(std::string_view text, EngineAddress& address) {
    std::string_view rest;
    if (text.starts_with('[')) {
        std::size_t end = text.find(']');
        if (end == std::string_view::npos) return "must have a ] after its [";
        address.host = text.substr(1, end - 1);
        rest = text.substr(end + 1);
    } else {
        std::size_t colon = text.find(':');
        address.host = text.substr(0, colon);
        rest = colon == std::string_view::npos ? std::string_view() : text.substr(colon);
        if (rest.find(':', 1) != std::string_view::npos) {
            return "must have an IPv6 address in [ and ]";
        }
    }
    if (address.host.empty()) return "must name a host";
    if (rest.empty()) return {};
    auto port = rest.starts_with(':') ? parse_port(rest.substr(1)) : std::nullopt;
    if (!port) return "must have a port of 1 to 65535 after the host";
    address.port = *port;
    return {};
}

std::string_view read_network_address(std::string_view rest, EngineAddress& address) {
    if (!is_clean(rest)) return "must have no space and no control character";
    if (rest.find_first_of("?#") != std::string_view::npos) return "must have no ? and no #";
    if (rest.find('@') != std::string_view::npos) return "must have no user name";
    std::size_t slash = rest.find('/');
    auto reason = split_host(rest.substr(0, slash), address);
    if (!reason.empty()) return reason;
    if (slash == std::string_view::npos) return {};
    address.path_prefix = rest.substr(slash);
    while (address.path_prefix.ends_with('/'))
        address.path_prefix.pop_back();
    return {};
}

Result<EngineAddress> socket_address(const std::string& shown, std::string_view path) {
    if (!path.starts_with('/')) return wrong(shown, "must have an absolute path after unix://");
    if (path.size() > kMaxSocketPath) return wrong(shown, "must have a path of at most 107 bytes");
    if (path.find('\0') != std::string_view::npos) return wrong(shown, "must have no zero byte");
    EngineAddress address;
    address.socket_path = path;
    address.text = "unix://" + std::string(path);
    return address;
}

/// The files that DOCKER_CERT_PATH stands for, as far as they must or happen to be there.
Status read_certificates(const EngineEnvironment& environment, bool demanded,
                         const std::function<bool(const std::string&)>& exists,
                         EngineAddress& address) {
    std::string folder = environment.docker_cert_path;
    if (folder.empty()) {
        if (environment.home.empty()) return Status();
        folder = environment.home + "/.docker";
    }
    std::string ca = folder + "/ca.pem";
    std::string cert = folder + "/cert.pem";
    std::string key = folder + "/key.pem";
    if (exists(ca)) address.ca_file = ca;
    bool has_cert = exists(cert);
    bool has_key = exists(key);
    if (demanded && (!has_cert || !has_key)) {
        return Error(ErrorCode::invalid_argument, "DOCKER_CERT_PATH=" + folder +
                                                      ": must be a folder that holds cert.pem and "
                                                      "key.pem; missing is " +
                                                      (has_cert ? "key.pem" : "cert.pem"));
    }
    if (has_cert && has_key) {
        address.cert_file = cert;
        address.key_file = key;
    }
    return Status();
}

std::string shown_address(const EngineAddress& address, std::string_view scheme) {
    bool ipv6 = address.host.find(':') != std::string::npos;
    std::string host = ipv6 ? "[" + address.host + "]" : address.host;
    return std::string(scheme) + "://" + host + ":" + std::to_string(address.port) +
           address.path_prefix;
}

std::string value_of(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::string() : std::string(value);
}

}  // namespace

EngineEnvironment EngineEnvironment::current() {
    EngineEnvironment environment;
    environment.docker_host = value_of("DOCKER_HOST");
    environment.docker_tls_verify = value_of("DOCKER_TLS_VERIFY");
    environment.docker_cert_path = value_of("DOCKER_CERT_PATH");
    environment.home = value_of("HOME");
    return environment;
}

Result<EngineAddress> parse_engine_address(const EngineEnvironment& environment,
                                           const std::function<bool(const std::string&)>& exists) {
    const std::string& value = environment.docker_host;
    if (value.empty()) {
        for (std::string_view path : kDefaultSockets) {
            if (exists(std::string(path))) return socket_address(value, path);
        }
        return socket_address(value, kDefaultSockets.front());
    }
    std::size_t colon = value.find("://");
    std::string scheme = colon == std::string::npos ? "" : value.substr(0, colon);
    std::string_view rest = std::string_view(value).substr(scheme.empty() ? 0 : colon + 3);
    if (scheme == "unix") {
        return socket_address(value, rest.empty() ? kDefaultSockets.front() : rest);
    }
    bool known = scheme.empty() || scheme == "tcp" || scheme == "http" || scheme == "https";
    if (!known || value.starts_with('/')) {
        return wrong(value, "must begin with unix://, tcp://, http:// or https://");
    }
    EngineAddress address;
    auto reason = read_network_address(rest, address);
    if (!reason.empty()) return wrong(value, reason);
    bool secured = !environment.docker_tls_verify.empty() || !environment.docker_cert_path.empty();
    address.tls = scheme == "https" || (scheme != "http" && secured);
    if (address.tls) {
        address.verify = !environment.docker_tls_verify.empty() || !secured;
        auto read = read_certificates(environment, secured, exists, address);
        if (!read) return read.error();
    }
    if (address.port == 0) address.port = address.tls ? kTlsPort : kPlainPort;
    address.text = shown_address(address, scheme.empty() ? "tcp" : scheme);
    return address;
}

Result<EngineAddress> find_engine() {
    return parse_engine_address(EngineEnvironment::current(), [](const std::string& path) {
        return ::access(path.c_str(), F_OK) == 0;
    });
}

}  // namespace opensandbox::runtime::docker
