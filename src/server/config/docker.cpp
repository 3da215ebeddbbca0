#include "server/config/sections.hpp"

namespace opensandbox::server {
namespace {

using runtime::docker::DockerOptions;

constexpr bool is_not_empty(std::string_view text) {
    return !text.empty();
}

constexpr std::int64_t kLowestPort = 1024;
constexpr std::int64_t kHighestPort = 65535;

constexpr std::array kDockerKeys{
    keys::text<&Config::docker, &DockerOptions::network_mode>(
        "network_mode",
        "host, bridge or the name of a network; with host there is one sandbox, at port 44772: "
        "keep it in net.ipv4.ip_local_reserved_ports, or a connection of the host may have it.")
        .must(is_not_empty, "must be host, bridge or the name of a network"),
    keys::text<&Config::docker, &DockerOptions::host_ip>(
        "host_ip",
        "Public host of endpoints when the server itself runs in a container and listens on a "
        "wildcard or loopback address.")
        .like("\"192.0.2.1\""),
    keys::text<&Config::docker, &DockerOptions::publish_host>(
        "publish_host", "IPv4 address on which ports of containers are published.")
        .must(is_ipv4, "must be an IPv4 address"),
    keys::number<&Config::docker, &DockerOptions::port_range_min>(
        "port_range_min", kLowestPort, kHighestPort, "From which ports, at least 100."),
    keys::number<&Config::docker, &DockerOptions::port_range_max>("port_range_max", kLowestPort,
                                                                  kHighestPort, ""),
    keys::texts<&Config::docker, &DockerOptions::drop_capabilities>(
        "drop_capabilities", "Capabilities that containers do not have."),
    keys::flag<&Config::docker, &DockerOptions::no_new_privileges>(
        "no_new_privileges", "Set-uid programs gain nothing."),
    keys::text<&Config::docker, &DockerOptions::apparmor_profile>(
        "apparmor_profile", "Profiles of containers; without these lines the engine's."),
    keys::text<&Config::docker, &DockerOptions::seccomp_profile>("seccomp_profile", ""),
    keys::number<&Config::docker, &DockerOptions::pids_limit>("pids_limit", 1, INT32_MAX,
                                                              "Processes of a container."),
    keys::value<keys::read_texts_table, &Config::docker, &DockerOptions::sandbox_env>(
        "sandbox_env", "Variables of every container.")
        .like("{ LANG = \"C.UTF-8\" }"),
    keys::texts<&Config::docker, &DockerOptions::sandbox_binds>("sandbox_binds",
                                                                "Binds of every container.")
        .like("[\"/srv/models:/models:ro\"]"),
    keys::seconds<&Config::docker, &DockerOptions::api_timeout>(
        "api_timeout", "Seconds for a request to the engine."),
};

void read_docker(ConfigReader& reader, Config& config) {
    constexpr int kSpan = 100;
    const DockerOptions& options = config.docker;
    if (options.port_range_max - options.port_range_min + 1 < kSpan) {
        reader.fail("docker.port_range_max", "must leave 100 ports or more to port_range_min");
    }
    config.host_ip = options.host_ip;
}

}  // namespace

constinit const Section kDockerSection{
    .name = "docker",
    .comment =
        "Of the docker runtime. Its engine is the one that DOCKER_HOST names, else the one "
        "whose socket is there.",
    .keys = kDockerKeys,
    .read = read_docker};

}  // namespace opensandbox::server
