#include "server/config/config.hpp"

#include "model/warm_program.hpp"
#include "support/catch_result.hpp"
#include "support/scratch_directory.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::server;

TEST_CASE("config: no line at all gives the defaults") {
    auto config = parse_config("", "t");
    REQUIRE(config.has_value());
    REQUIRE(config->host == "127.0.0.1");
    REQUIRE(config->port == 8080);
    REQUIRE_FALSE(config->api_key);
    REQUIRE(config->limit_concurrency == 1024);
    REQUIRE(config->limit_without_key == 512);
    REQUIRE(config->limit_connections == 16384);
    REQUIRE(config->timeout_send == 60);
    REQUIRE(config->limit_proxied == 1024);
    REQUIRE(config->limit_per_sandbox == 256);
    REQUIRE(config->address_range == "10.77.0.0/16");
    REQUIRE(config->address_range6 == "auto");
    REQUIRE(config->pool == runtime::native::PoolSettings{8, 128, 60});
}

TEST_CASE("config: every key is read, unknown ones are ignored") {
    auto config = parse_config(R"(
top = 1
[server]
host = "0.0.0.0"
port = 0
api_key = ""
eip = "gw.example.com/x"
max_sandbox_timeout_seconds = 60
timeout_keep_alive = 5
timeout_graceful_shutdown = 0
limit_concurrency = 0
limit_concurrency_without_key = 7
limit_connections = 8
timeout_send = 9
trusted_proxies = ["127.0.0.1", "10.9.0.0/16"]
loop = "auto"
[log]
level = "debug"
format = "json"
file_enabled = true
file_path = "/l/s.log"
access_file_path = "/l/a.log"
file_max_bytes = 1000
file_backup_count = 2
[docker]
host_ip = "192.0.2.1"
network_mode = "bridge"
[store]
path = "/x/y.db"
[native]
state_dir = "/s"
address_range = "10.0.0.0/8"
address_range6 = "fd77::/64"
publish_host = "0.0.0.0"
[native.pool]
size = 0
max = 12
idle_seconds = 5
later = true
[native.warm]
max = 3
[native.warm.images."python:3.12"]
programs = [{ language = "python", import = ["json"] }]
size = 2
[renew_intent]
enabled = true
min_interval_seconds = 5
[renew_intent.redis]
enabled = true
dsn = "redis://127.0.0.1"
consumer_concurrency = 2
[proxy]
resolve_internal = false
limit_concurrency = 10
limit_per_sandbox = 11
[otel]
enabled = true
endpoint = "http://c:4318/v1/metrics"
export_interval_millis = 500
[tenants]
provider = "http"
endpoint = "http://127.0.0.1:1/t"
auth_header = "X"
auth_token = "y"
[quotas]
max_sandboxes = 3
max_cpu = "1500m"
max_memory = "2Gi"
[something]
else = 1
)",
                               "t");
    REQUIRE(config.has_value());
    REQUIRE(config->host == "0.0.0.0");
    REQUIRE(config->port == 0);
    REQUIRE(config->api_key == "");
    REQUIRE(config->eip == "gw.example.com/x");
    REQUIRE(config->max_sandbox_timeout_seconds == 60);
    REQUIRE(config->timeout_keep_alive == 5);
    REQUIRE(config->limit_concurrency == 0);
    REQUIRE(config->limit_without_key == 7);
    REQUIRE(config->limit_connections == 8);
    REQUIRE(config->timeout_send == 9);
    REQUIRE(config->limit_proxied == 10);
    REQUIRE(config->limit_per_sandbox == 11);
    REQUIRE(config->trusted_proxies.size() == 2);
    REQUIRE(config->trusted_proxies.back().to_string() == "10.9.0.0/16");
    REQUIRE(config->log_level == log::Level::debug);
    REQUIRE(config->log_format == log::Format::json);
    REQUIRE(config->host_ip == "192.0.2.1");
    REQUIRE(config->store_path == "/x/y.db");
    REQUIRE(config->state_dir == "/s");
    REQUIRE(config->pool == runtime::native::PoolSettings{0, 12, 5});
    REQUIRE(config->warm.pool == runtime::native::PoolSettings{1, 3, 60});
    REQUIRE(config->warm.images.size() == 1);
    const auto& warm = config->warm.images.at("python:3.12");
    REQUIRE(warm.pool == runtime::native::PoolSettings{2, 3, 60});
    auto programs = model::parse_warm_programs(warm.programs);
    REQUIRE(programs.has_value());
    REQUIRE(programs->front().imports == std::vector<std::string>{"json"});
    REQUIRE(config->ignored.empty());
    REQUIRE(config->log_file.enabled);
    REQUIRE(config->log_file.path == "/l/s.log");
    REQUIRE(config->log_file.access_path == "/l/a.log");
    REQUIRE(config->log_file.max_bytes == 1000);
    REQUIRE(config->log_file.backup_count == 2);
    REQUIRE(config->renew.enabled);
    REQUIRE(config->renew.min_interval_seconds == 5);
    REQUIRE(config->renew.redis_dsn == "redis://127.0.0.1");
    REQUIRE(config->renew.redis_queue_key == "opensandbox:renew:intent");
    REQUIRE(config->renew.redis_consumer_concurrency == 2);
    REQUIRE_FALSE(config->resolve_internal);
    REQUIRE(config->otel.export_interval_millis == 500);
    REQUIRE(config->tenants.enabled);
    REQUIRE(config->tenants.provider == TenantProvider::http);
    REQUIRE(config->quota.max_sandboxes == 3);
    REQUIRE(config->quota.max_cpu_millicores == 1500);
    REQUIRE(config->quota.max_memory_bytes == 2LL << 30);
}

TEST_CASE("config: a wrong value is refused naming section and key") {
    const std::pair<const char*, const char*> table[] = {
        {"[server]\nport = 70000", "server.port"},
        {"[server]\nport = -1", "server.port"},
        {"[server]\nport = \"80\"", "server.port"},
        {"[server]\nport = 80.0", "server.port"},
        {"[server]\nhost = 1", "server.host"},
        {"[server]\napi_key = 1", "server.api_key"},
        {"[server]\nmax_sandbox_timeout_seconds = 59", "server.max_sandbox_timeout_seconds"},
        {"[server]\ntimeout_keep_alive = 0", "server.timeout_keep_alive"},
        {"[server]\nlimit_concurrency = -1", "server.limit_concurrency"},
        {"[server]\nlimit_concurrency_without_key = -1", "server.limit_concurrency_without_key"},
        {"[server]\nlimit_connections = 7", "server.limit_connections"},
        {"[server]\ntimeout_send = 0", "server.timeout_send"},
        {"[proxy]\nlimit_concurrency = -1", "proxy.limit_concurrency"},
        {"[proxy]\nlimit_per_sandbox = 1.5", "proxy.limit_per_sandbox"},
        {"[server]\ntrusted_proxies = \"10.0.0.1\"", "server.trusted_proxies"},
        {"[server]\ntrusted_proxies = [\"front.example\"]", "server.trusted_proxies"},
        {"[server]\ntrusted_proxies = [\"10.0.0.0/33\"]", "server.trusted_proxies"},
        {"[log]\nlevel = \"loud\"", "log.level"},
        {"[log]\nformat = \"xml\"", "log.format"},
        {"[log]\nfile_enabled = 1", "log.file_enabled"},
        {"[native]\nstate_dir = \"relative\"", "native.state_dir"},
        {"[native]\naddress_range = \"10.77.0.0\"", "native.address_range"},
        {"[native]\naddress_range = \"10.77.0.0/29\"", "native.address_range"},
        {"[native]\naddress_range = \"10.777.0.0/16\"", "native.address_range"},
        {"[native]\naddress_range6 = \"off\"", "native.address_range6"},
        {"[native]\naddress_range6 = \"fd77::/120\"", "native.address_range6"},
        {"[native]\naddress_range6 = \"2001:db8::/64\"", "native.address_range6"},
        {"[native.pool]\nsize = 1001", "native.pool.size"},
        {"[native.pool]\nsize = 10\nmax = 9", "native.pool.max"},
        {"[native.pool]\nidle_seconds = 0", "native.pool.idle_seconds"},
        {"[native]\nwarm = 1", "native.warm"},
        {"[native.warm]\nsize = 4\nmax = 2", "native.warm.max"},
        {"[native.warm]\nimages = 3", "native.warm.images"},
        {"[native.warm.images.\"A b\"]\nsize = 1", "native.warm.images.\"A b\""},
        {"[native.warm.images.\"a:1\"]\nsize = -1", "native.warm.images.\"a:1\".size"},
        {"[native.warm.images.\"a:1\"]\nprograms = [{ language = \"perl\" }]",
         "native.warm.images.\"a:1\".programs"},
        {"[native]\npull = \"sometimes\"", "native.pull"},
        {"[registry]\nca_file = \"relative\"", "registry.ca_file"},
        {"[registry]\nca_hosts = [\"a\"]", "registry.ca_hosts"},
        {"[registry]\nca_file = \"/a\"\nca_hosts = [1]", "registry.ca_hosts"},
        {"[registry]\nplain_http_hosts = \"a\"", "registry.plain_http_hosts"},
        {"[registry]\nplain_http_hosts = [\"http://a\"]", "registry.plain_http_hosts"},
        {"registry = 1", "registry"},
        {"[native]\npublish_host = \"localhost\"", "native.publish_host"},
        {"[runtime]\ntype = \"firecracker\"", "runtime.type"},
        {"[secure_runtime]\ntype = \"kata\"", "secure_runtime.type"},
        {"[secure_runtime]\ntype = \"gvisor\"\nrunsc = \"\"", "secure_runtime.runsc"},
        {"[secure_runtime]\ntype = \"gvisor\"\n[native.warm.images.\"python:3\"]\nsize = 1",
         "native.warm.images"},
        {"[ingress]\nmode = \"gateway\"", "ingress.mode"},
        {"[store]\ntype = \"postgresql\"", "store.type"},
        {"[ingress.secure_access]\nactive_key = \"k\"", "ingress.secure_access"},
        {"[tenants]\nprovider = \"ldap\"", "tenants.provider"},
        {"[tenants]\nprovider = \"http\"", "tenants.endpoint"},
        {"[tenants]\nauth_token = \"x\"", "tenants.auth_header"},
        {"[quotas]\nmax_sandboxes = -1", "quotas.max_sandboxes"},
        {"[quotas]\nmax_cpu = 0", "quotas.max_cpu"},
        {"[quotas]\nmax_cpu = \"much\"", "quotas.max_cpu"},
        {"[quotas]\nmax_memory = \"1.5G\"", "quotas.max_memory"},
        {"[renew_intent.redis]\nenabled = true", "renew_intent.redis.dsn"},
        {"[renew_intent.redis]\nconsumer_concurrency = 0",
         "renew_intent.redis.consumer_concurrency"},
        {"[otel]\nexport_interval_millis = 0", "otel.export_interval_millis"},
        {"[log]\nfile_max_bytes = -1", "log.file_max_bytes"},
        {"[proxy]\nresolve_internal = 1", "proxy.resolve_internal"},
        {"server = 1", "server"},
        {"native = [1]", "native"},
    };
    for (const auto& [text, key] : table) {
        INFO(text);
        auto config = parse_config(text, "t");
        REQUIRE_FALSE(config.has_value());
        CHECK_THAT(config.error().message(), Catch::StartsWith(std::string(key) + ": must be"));
    }
}

TEST_CASE("config: all wrong values are told at once") {
    auto config = parse_config("[server]\nport = -1\n[log]\nlevel = \"x\"", "t");
    REQUIRE_THAT(config.error().message(),
                 Catch::Contains("server.port") && Catch::Contains("log.level"));
}

TEST_CASE("config: a syntax error says where") {
    auto config = parse_config("[server]\nport = = 1", "/etc/x.toml");
    REQUIRE_THAT(config.error().message(), Catch::StartsWith("/etc/x.toml:2:"));
}

TEST_CASE("config: what the parser itself would abort on is an error, too") {
    for (const char* text : {"[=]", "[.a]", "[[=", "[ =", "[a.", "[\xff]", "\xff"}) {
        INFO(text);
        auto config = parse_config(text, "x.toml");
        REQUIRE_FALSE(config.has_value());
        CHECK_THAT(config.error().message(), Catch::StartsWith("x.toml:"));
    }
}

TEST_CASE("config: characters beyond ASCII belong in quotes and comments") {
    auto good = parse_config(
        "\xef\xbb\xbf# gr\xc3\xbc\xc3\x9f"
        "e\n\"\xc3\xa4\" = '\xc3\xb6'\n[server]\n"
        "api_key = \"\"\"a\n\xc3\xa4\\\"\"\"\"\nx = '''\xc3\xa4'''",
        "x");
    REQUIRE(good.has_value());
    auto bad = parse_config(
        "a = \"\xc3\xa4\"\n\ngr\xc3\xb6\xc3\x9f"
        "e = 1",
        "x.toml");
    REQUIRE_FALSE(bad.has_value());
    CHECK_THAT(bad.error().message(), Catch::StartsWith("x.toml:3: "));
}

TEST_CASE("config: a missing file is an error that names it") {
    auto config = load_config("/nonexistent/x.toml");
    REQUIRE_THAT(config.error().message(), Catch::Contains("/nonexistent/x.toml"));
}

TEST_CASE("config: the short examples parse") {
    for (const char* kind : {"native"}) {
        auto config = parse_config(example_config(kind), kind);
        INFO((config ? "" : config.error().message()));
        REQUIRE(config.has_value());
    }
    REQUIRE_FALSE(example_config("docker").empty());
    REQUIRE_FALSE(example_config("docker-zh").empty());
    REQUIRE(example_config("k8s").empty());
}

TEST_CASE("config: tenants and a key of the server exclude each other") {
    Config config;
    config.tenants.enabled = true;
    REQUIRE(apply_environment(config).has_value());
    config.api_key = "k";
    auto refused = apply_environment(config);
    REQUIRE_FALSE(refused.has_value());
    CHECK_THAT(refused.error().message(), Catch::StartsWith("tenants: must be absent"));
}
