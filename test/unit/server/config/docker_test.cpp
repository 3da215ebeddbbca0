#include "egress/settings/environment.hpp"
#include "server/config/config.hpp"
#include "server/config/egress_settings.hpp"
#include "support/catch_result.hpp"

using namespace opensandbox;
using namespace opensandbox::server;

TEST_CASE("the Docker runtime is chosen and configured", "[server][config]") {
    auto config = parse_config(R"([runtime]
type = "docker"
execd_run_as_init = true
[docker]
network_mode = "osb"
api_timeout = 30
publish_host = "192.0.2.7"
port_range_min = 20000
port_range_max = 20099
drop_capabilities = ["MKNOD"]
no_new_privileges = false
seccomp_profile = "unconfined"
pids_limit = 100
sandbox_binds = ["/a:/b:ro"]
[docker.sandbox_env]
LANG = "C.UTF-8"
[storage]
allowed_host_paths = ["/srv/data"]
ossfs_mount_root = "/mnt/buckets"
[egress]
image = "egress:1"
mode = "dns+nft"
disable_ipv6 = false
readiness_timeout_seconds = 5
[egress.upstream_proxy]
url = "http://proxy:3128"
[secure_runtime]
type = "gvisor"
docker_runtime = "runsc"
)",
                               "test");
    REQUIRE(config);
    CHECK(config->runtime == RuntimeType::docker);
    CHECK(config->publish_host == "192.0.2.7");
    CHECK(config->allowed_host_paths == std::vector<std::string>{"/srv/data"});
    const auto& docker = config->docker;
    CHECK(docker.execd_run_as_init);
    CHECK(docker.network_mode == "osb");
    CHECK(docker.api_timeout == std::chrono::seconds(30));
    CHECK(docker.port_range_min == 20000);
    CHECK(docker.port_range_max == 20099);
    CHECK(docker.drop_capabilities == std::vector<std::string>{"MKNOD"});
    CHECK_FALSE(docker.no_new_privileges);
    CHECK(docker.seccomp_profile == "unconfined");
    CHECK(docker.pids_limit == 100);
    CHECK(docker.sandbox_env == model::StringMap{{"LANG", "C.UTF-8"}});
    CHECK(docker.sandbox_binds == std::vector<std::string>{"/a:/b:ro"});
    CHECK(docker.ossfs_mount_root == "/mnt/buckets");
    CHECK(config->sidecar.image == "egress:1");
    CHECK(config->sidecar.mode == "dns+nft");
    CHECK_FALSE(config->sidecar.disable_ipv6);
    CHECK(config->sidecar.readiness_timeout == std::chrono::seconds(5));
    CHECK(config->sidecar.upstream_proxy_url == "http://proxy:3128");
    CHECK(docker.secure_runtime == "gvisor");
    CHECK(docker.oci_runtime == "runsc");
}

TEST_CASE("the Docker runtime's defaults are the contract's", "[server][config]") {
    auto config = parse_config("[runtime]\ntype = \"docker\"", "test");
    REQUIRE(config);
    const auto& docker = config->docker;
    CHECK(config->publish_host == "0.0.0.0");
    CHECK(docker.api_timeout == std::chrono::seconds(180));
    CHECK(docker.port_range_min == 40000);
    CHECK(docker.port_range_max == 60000);
    CHECK(docker.pids_limit == 4096);
    CHECK(docker.no_new_privileges);
    CHECK(docker.drop_capabilities.size() == 9);
    CHECK(config->sidecar.disable_ipv6);
    CHECK(docker.ossfs_mount_root == "/mnt/ossfs");
}

TEST_CASE("settings of the Docker runtime that break a rule are named", "[server][config]") {
    std::vector<std::pair<std::string, std::string>> wrong{
        {"[docker]\nport_range_min = 80", "docker.port_range_min"},
        {"[docker]\nport_range_min = 40000\nport_range_max = 40050", "docker.port_range_max"},
        {"[docker]\npublish_host = \"localhost\"", "docker.publish_host"},
        {"[docker]\nnetwork_mode = \"\"", "docker.network_mode"},
        {"[docker]\napi_timeout = 0", "docker.api_timeout"},
        {"[docker]\npids_limit = 0", "docker.pids_limit"},
        {"[docker]\ndrop_capabilities = \"MKNOD\"", "docker.drop_capabilities"},
        {"[docker]\nsandbox_env = {A = 1}", "docker.sandbox_env"},
        {"[storage]\nallowed_host_paths = [\"data\"]", "storage.allowed_host_paths"},
        {"[storage]\nossfs_mount_root = \"mnt\"", "storage.ossfs_mount_root"},
        {"[egress]\nmode = \"nft\"", "egress.mode"},
        {"[egress]\nmode = \"dns+nft\"\n[egress.upstream_proxy]\nurl = \"proxy:1\"",
         "egress.upstream_proxy.url"},
        {"[egress]\nimage = \"e:1\"\n[egress.upstream_proxy]\nurl = \"http://proxy\"",
         "egress.upstream_proxy.url"},
        {"[egress]\nmode = \"dns\"\n[egress.upstream_proxy]\nurl = \"http://proxy\"",
         "egress.upstream_proxy.url"},
        {"[runtime]\ntype = \"docker\"\n[secure_runtime]\ntype = \"firecracker\"",
         "secure_runtime.type"},
        {"[runtime]\ntype = \"docker\"\n[secure_runtime]\ntype = \"gvisor\"",
         "secure_runtime.docker_runtime"},
        {"[runtime]\ntype = \"podman\"", "runtime.type"},
    };
    for (const auto& [text, key] : wrong) {
        INFO(text);
        auto config = parse_config(text, "test");
        REQUIRE_FALSE(config);
        CHECK(config.error().message().find(key + ":") != std::string::npos);
    }
}

TEST_CASE("settings of egress control by their variables are checked at start",
          "[server][config]") {
    const auto with = [](const std::string& lines) {
        return parse_config("[egress.environment]\n" + lines, "test");
    };
    const auto good = with(
        "OPENSANDBOX_EGRESS_DNS_UPSTREAM = \"192.0.2.53\"\n"
        "OPENSANDBOX_EGRESS_DNS_MAX_LABEL = \"30\"\n");
    REQUIRE(good);
    CHECK(good->sidecar.environment.size() == 2);
    for (const char* bad :
         {"OPENSANDBOX_EGRESS_DNS_UPSTREAM = \"resolver.example\"\n",
          "OPENSANDBOX_EGRESS_DNS_MAX_LABEL = \"many\"\n",
          "OPENSANDBOX_EGRESS_DNS_UPSTREAM_TIMEOUT = \"0\"\n", "OPENSANDBOX_EGRESS_TOKEN = \"x\"\n",
          "OPENSANDBOX_EGRESS_UPSTREAM_PROXY = \"http://p\"\n", "PATH = \"/bin\"\n",
          "OPENSANDBOX_EGRESS_BLOCK_DOH_443 = true\n"}) {
        CAPTURE(bad);
        const auto config = with(bad);
        REQUIRE_FALSE(config);
        CHECK(config.error().message().find("egress.environment") != std::string::npos);
    }
}

TEST_CASE("what only sidecars have is refused for native egress control", "[server][config]") {
    const std::string section =
        "[egress.environment]\nOPENSANDBOX_EGRESS_NAMESERVER_EXEMPT = \"192.0.2.53\"\n";
    CHECK(parse_config("[runtime]\ntype = \"docker\"\n" + section, "test"));
    for (const char* runtime : {"", "[runtime]\ntype = \"native\"\n"}) {
        const auto refused = parse_config(runtime + section, "test");
        REQUIRE_FALSE(refused);
        CHECK_THAT(refused.error().message(),
                   Catch::StartsWith("egress.environment.OPENSANDBOX_EGRESS_NAMESERVER_EXEMPT: "));
    }
}

TEST_CASE("native egress control gets what the section says, both of names and of addresses",
          "[server][config]") {
    const auto config = parse_config(R"([egress.upstream_proxy]
url = "http://proxy:3128"
authorization = "Basic x"
ca_cert_path = "/etc/ca.pem"
[egress.environment]
OPENSANDBOX_EGRESS_BLOCK_DOH_443 = "true"
)",
                                     "test");
    REQUIRE(config);
    const auto settings = native_egress_settings(*config);
    const auto value = [&](std::string_view name) {
        for (const auto& [key, text] : settings)
            if (key == "OPENSANDBOX_EGRESS_" + std::string(name)) return text;
        return std::string();
    };
    CHECK(value("MODE") == "dns+nft");
    CHECK(value("UPSTREAM_PROXY") == "http://proxy:3128");
    CHECK(value("UPSTREAM_PROXY_AUTH") == "Basic x");
    CHECK(value("MITMPROXY_UPSTREAM_EXTRA_CA") == "/etc/ca.pem");
    CHECK(value("BLOCK_DOH_443") == "true");
    const auto lookup = [&](std::string_view name) -> std::optional<std::string> {
        for (const auto& [key, text] : settings)
            if (key == name) return text;
        return std::nullopt;
    };
    CHECK(egress::parse_environment(lookup));
}
