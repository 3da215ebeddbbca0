#pragma once

#include "base/error.hpp"
#include "base/log.hpp"
#include "model/quota.hpp"
#include "net/address_block.hpp"
#include "registry/options.hpp"
#include "runtime/docker/docker_options.hpp"
#include "runtime/kubernetes/kubernetes_options.hpp"
#include "runtime/native/records/warm_options.hpp"
#include "runtime/runtime.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::server {

/// [log] file_*: lines also go to files, which are turned over when they are full.
struct LogFileConfig {
    bool enabled = false;
    std::filesystem::path path;            ///< empty: ~/logs/opensandbox/server.log
    std::filesystem::path access_path;     ///< empty: access.log beside it; one line a request
    std::int64_t max_bytes = 100LL << 20;  ///< 0: never turned over
    std::int64_t backup_count = 5;         ///< full files kept
};

/// [renew_intent]: sandboxes that are used live longer (lifecycle 8).
struct RenewConfig {
    bool enabled = false;
    std::int64_t min_interval_seconds = 60;
    bool redis_enabled = false;
    std::string redis_dsn;  ///< redis://[[user]:password@]host[:port][/database]
    std::string redis_queue_key = "opensandbox:renew:intent";
    std::int64_t redis_consumer_concurrency = 8;
};

/// [otel]: histograms are sent as OTLP over HTTP (lifecycle 9).
struct OtelConfig {
    bool enabled = false;
    std::string endpoint;  ///< whole URL; empty: from OTEL_EXPORTER_OTLP_*
    std::string service_name = "opensandbox-server";
    std::int64_t export_interval_millis = 0;  ///< 0: as the environment says, else a minute
};

enum class TenantProvider : std::uint8_t { file, http };

/// [tenants]: several customers, each with keys and sandboxes of its own (lifecycle 7.3).
struct TenantsConfig {
    bool enabled = false;  ///< the section is there, or SANDBOX_TENANTS_CONFIG_PATH is set
    TenantProvider provider = TenantProvider::file;
    std::filesystem::path file;  ///< empty: ~/.opensandbox/tenants.toml
    std::string endpoint;        ///< http: asked with the caller's key
    std::int64_t max_stale_seconds = 300;
    std::int64_t timeout_seconds = 5;
    std::string auth_header;  ///< name of a field that authenticates us to the provider
    std::string auth_token;   ///< its value
};

enum class RuntimeType : std::uint8_t { native, docker, kubernetes };

/// The configuration (lifecycle 7). Every member has its default, so that no file is needed.
struct Config {
    // [server]
    std::string host = "127.0.0.1";      ///< numeric address, or "localhost"
    std::uint16_t port = 8080;           ///< 0: the kernel chooses
    std::optional<std::string> api_key;  ///< absent: made at first start; "": no authentication
    std::string eip;  ///< public host of endpoints, with optional scheme and path
    std::optional<std::int64_t> max_sandbox_timeout_seconds;  ///< 60 or more
    std::int64_t timeout_keep_alive = 30;                     ///< seconds
    std::int64_t timeout_graceful_shutdown = 5;               ///< seconds
    /// Requests with a key at once, to the API itself; 0: no limit.
    std::int64_t limit_concurrency = 1024;
    std::int64_t limit_without_key = 512;    ///< limit_concurrency_without_key: the others
    std::int64_t limit_connections = 16384;  ///< at once
    std::int64_t timeout_send = 60;  ///< seconds that a client without a key may take nothing
    /// Whose X-Forwarded-For, -Proto and -Host are believed; empty: nobody's.
    std::vector<net::AddressBlock> trusted_proxies;

    // [proxy]
    bool resolve_internal = true;  ///< the proxy goes to a sandbox's own address where it has one
    std::int64_t limit_proxied = 1024;     ///< proxy.limit_concurrency: with a key; 0: no limit
    std::int64_t limit_per_sandbox = 256;  ///< with and without a key each; 0: no limit

    // [log]
    log::Level log_level = log::Level::info;
    log::Format log_format = log::Format::text;
    LogFileConfig log_file;

    // [runtime]
    RuntimeType runtime = RuntimeType::native;

    // [docker], [secure_runtime]; what other sections say is filled in by serve
    runtime::docker::DockerOptions docker;
    runtime::kubernetes::KubernetesOptions kubernetes;  ///< [kubernetes]
    std::string host_ip;  ///< public host when the server itself runs in a container

    /// [egress]. Its environment, [egress.environment], is settings of sidecars and of native
    /// egress control by their variables (network contract 1.3), where no key of [egress] speaks of
    /// them.
    runtime::EgressSidecarOptions sidecar;

    // [storage]
    std::vector<std::string> allowed_host_paths;  ///< of host volumes; empty: none

    // [store]
    std::filesystem::path store_path;  ///< empty: in the state directory

    // [native]
    std::filesystem::path state_dir;  ///< empty: the default of this user
    std::string address_range = "10.77.0.0/16";
    std::string address_range6 = "auto";  ///< an IPv6 network, auto or none
    runtime::native::PoolSettings pool;
    runtime::native::WarmOptions warm;
    model::ResourceLimits native_limits = model::preset_limits();  ///< where a request says none
    bool native_network_off = false;                               ///< [native] network = "none"
    std::string runsc;      ///< [secure_runtime] gvisor: its program; empty: the host's kernel
    bool rootless = false;  ///< an ordinary user serves the native runtime; set by serve
    /// Where ports of sandboxes are published; docker.publish_host with the docker runtime.
    std::string publish_host = "127.0.0.1";

    // [registry], native.pull; where logins are kept is filled in by serve
    registry::RegistryOptions registry;

    // [metrics]
    std::int64_t metrics_sandboxes = 100;  ///< sandboxes with series of their own; 0: none

    RenewConfig renew;
    OtelConfig otel;
    TenantsConfig tenants;
    model::Quota quota;  ///< [quotas]: of every tenant that has none of its own

    /// Settings that were understood but have no effect here; logged at start.
    std::vector<std::string> ignored;
};

/// Parses TOML. Unknown keys are ignored; the error names every `section.key` with the rule it
/// breaks. `source` stands in front of syntax errors.
Result<Config> parse_config(std::string_view toml, std::string_view source);

/// Reads a file of at most 1 MiB.
Result<Config> load_config(const std::filesystem::path& file);

/// Environment variables that win over the file (lifecycle 7.1), and what they may not contradict.
Status apply_environment(Config& config);

/// `--config`, else SANDBOX_CONFIG_PATH, else ~/.sandbox.toml when it exists, else empty.
std::filesystem::path find_config(const std::string& flag);

/// DEBUG, INFO, WARNING, WARN, ERROR, CRITICAL; case ignored.
std::optional<log::Level> parse_log_level(std::string_view text);
/// text, json.
std::optional<log::Format> parse_log_format(std::string_view text);

/// The commented examples that `init-config` writes: "native", "docker", "docker-zh"; empty for a
/// kind that is unknown.
std::string_view example_config(std::string_view kind);
/// All sections, every key with its help, commented out.
std::string config_skeleton();

}  // namespace opensandbox::server
