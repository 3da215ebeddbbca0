#include "server/config/sections.hpp"

#include <algorithm>

namespace opensandbox::server {
namespace {

using runtime::docker::DockerOptions;

void read_variables(ConfigReader& reader, std::string_view path, model::StringMap& into) {
    const toml::node* found = reader.node(path);
    if (!found) return;
    const toml::table* table = found->as_table();
    bool right = table != nullptr;
    if (right) {
        for (const auto& [key, value] : *table) {
            auto text = value.value_exact<std::string>();
            right = right && text.has_value();
            if (text) into.emplace_back(std::string(key.str()), *text);
        }
    }
    if (!right) reader.fail(path, "must be a table of texts");
}

/// Whole seconds or a fraction of them.
void read_seconds(ConfigReader& reader, std::string_view path, std::chrono::milliseconds& into) {
    constexpr double kMilliseconds = 1000;
    constexpr double kLongest = 86400;
    const toml::node* found = reader.node(path);
    if (!found) return;
    auto seconds = found->value<double>();
    if (!seconds || *seconds <= 0 || *seconds > kLongest) {
        reader.fail(path, "must be a number of seconds above 0");
        return;
    }
    into = std::chrono::milliseconds(static_cast<std::int64_t>(*seconds * kMilliseconds));
}

void read_ports(ConfigReader& reader, DockerOptions& options) {
    constexpr std::int64_t kLowest = 1024;
    constexpr std::int64_t kHighest = 65535;
    constexpr std::int64_t kSpan = 100;
    std::int64_t first = options.port_range_min;
    std::int64_t last = options.port_range_max;
    reader.number("docker.port_range_min", kLowest, kHighest, first);
    reader.number("docker.port_range_max", kLowest, kHighest, last);
    if (last - first + 1 < kSpan) {
        reader.fail("docker.port_range_max", "must leave 100 ports or more to port_range_min");
        return;
    }
    options.port_range_min = static_cast<std::uint16_t>(first);
    options.port_range_max = static_cast<std::uint16_t>(last);
}

void read_docker_section(ConfigReader& reader, DockerOptions& options) {
    reader.text("docker.network_mode", options.network_mode);
    if (options.network_mode.empty()) {
        reader.fail("docker.network_mode", "must be host, bridge or the name of a network");
    }
    read_seconds(reader, "docker.api_timeout", options.api_timeout);
    reader.text("docker.host_ip", options.host_ip);
    reader.texts("docker.drop_capabilities", options.drop_capabilities);
    options.no_new_privileges = reader.flag("docker.no_new_privileges", options.no_new_privileges);
    reader.text("docker.apparmor_profile", options.apparmor_profile);
    reader.text("docker.seccomp_profile", options.seccomp_profile);
    reader.number("docker.pids_limit", 1, INT32_MAX, options.pids_limit);
    reader.text("docker.publish_host", options.publish_host);
    if (!is_ipv4(options.publish_host)) {
        reader.fail("docker.publish_host", "must be an IPv4 address");
    }
    read_ports(reader, options);
    read_variables(reader, "docker.sandbox_env", options.sandbox_env);
    reader.texts("docker.sandbox_binds", options.sandbox_binds);
}

/// http(s)://host[:port] and nothing else.
bool is_proxy_url(std::string_view url) {
    for (std::string_view scheme : {"http://", "https://"}) {
        if (!url.starts_with(scheme)) continue;
        std::string_view rest = url.substr(scheme.size());
        return !rest.empty() && rest.find_first_of("/?#@ ") == std::string_view::npos;
    }
    return false;
}

void read_egress(ConfigReader& reader, DockerOptions& options, std::vector<std::string>& ignored) {
    reader.text("egress.image", options.egress_image);
    reader.text("egress.mode", options.egress_mode);
    bool known = options.egress_mode.empty() || options.egress_mode == "dns" ||
                 options.egress_mode == "dns+nft";
    if (!known) {
        reader.fail("egress.mode", "must be dns or dns+nft");
    }
    options.egress_disable_ipv6 = reader.flag("egress.disable_ipv6", options.egress_disable_ipv6);
    std::chrono::milliseconds readiness = options.egress_readiness_timeout;
    read_seconds(reader, "egress.readiness_timeout_seconds", readiness);
    options.egress_readiness_timeout = std::chrono::ceil<std::chrono::seconds>(readiness);
    reader.text("egress.otlp_endpoint", options.egress_otlp_endpoint);
    reader.text("egress.upstream_proxy.url", options.upstream_proxy_url);
    reader.text("egress.upstream_proxy.authorization", options.upstream_proxy_authorization);
    reader.text("egress.upstream_proxy.ca_cert_path", options.upstream_proxy_ca_cert_path);
    if (!options.upstream_proxy_url.empty() && !is_proxy_url(options.upstream_proxy_url)) {
        reader.fail("egress.upstream_proxy.url", "must be http(s)://host[:port]");
    }
    if (!options.upstream_proxy_url.empty() &&
        runtime::docker::egress_mode_of(options) != "dns+nft") {
        reader.fail("egress.upstream_proxy.url", "needs egress.mode = \"dns+nft\"");
    }
    for (const char* key : {"egress.requests", "egress.limits"}) {
        if (reader.node(key)) ignored.emplace_back(std::string(key) + ": for Kubernetes only");
    }
}

}  // namespace

void read_docker(ConfigReader& reader, Config& config) {
    DockerOptions& options = config.docker;
    reader.text("runtime.execd_image", options.execd_image);
    options.execd_run_as_init = reader.flag("runtime.execd_run_as_init", false);
    read_docker_section(reader, options);
    read_egress(reader, options, config.ignored);
    config.host_ip = options.host_ip;
}

void read_secure_runtime(ConfigReader& reader, Config& config) {
    DockerOptions& options = config.docker;
    reader.text("secure_runtime.type", options.secure_runtime);
    reader.text("secure_runtime.docker_runtime", options.oci_runtime);
    if (options.secure_runtime.empty()) {
        options.oci_runtime.clear();
        return;
    }
    if (options.secure_runtime != "gvisor" && options.secure_runtime != "kata") {
        reader.fail("secure_runtime.type", "must be empty, gvisor or kata with the docker runtime");
    }
    if (options.oci_runtime.empty()) {
        reader.fail("secure_runtime.docker_runtime", "must name the engine's runtime");
    }
}

void read_storage(ConfigReader& reader, Config& config) {
    reader.texts("storage.allowed_host_paths", config.allowed_host_paths);
    bool absolute = std::ranges::all_of(
        config.allowed_host_paths, [](const std::string& path) { return path.starts_with('/'); });
    if (!absolute) reader.fail("storage.allowed_host_paths", "must hold absolute paths");
    reader.text("storage.ossfs_mount_root", config.docker.ossfs_mount_root);
    if (!config.docker.ossfs_mount_root.starts_with('/')) {
        reader.fail("storage.ossfs_mount_root", "must be an absolute path");
    }
}

}  // namespace opensandbox::server
