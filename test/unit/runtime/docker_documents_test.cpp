#include "runtime/docker/engine/decode.hpp"
#include "support/catch_result.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::runtime::docker;

namespace {

json::value document(std::string_view text) {
    auto parsed = json::parse(text);
    REQUIRE(parsed);
    return std::move(*parsed);
}

/// As Docker 20.10 describes a container, shortened.
constexpr std::string_view kContainer = R"({
  "Id": "6b2d4533", "Name": "/sandbox-1", "Image": "sha256:1fab", "Platform": "linux",
  "Created": "2026-11-22T06:21:02.546215931Z",
  "State": {"Status": "paused", "Running": true, "Paused": true, "Restarting": false,
            "OOMKilled": false, "Dead": false, "Pid": 7, "ExitCode": 0, "Error": "",
            "StartedAt": "2026-11-22T06:21:03.171472829Z", "FinishedAt": "0001-01-01T00:00:00Z",
            "Health": {"Status": "unhealthy", "FailingStreak": 2, "Log": [
              {"Start": "2026-11-22T06:21:04Z", "End": "2026-11-22T06:21:05+01:00", "ExitCode": 1,
               "Output": "no"}]}},
  "Config": {"Image": "busybox:1", "Labels": {"opensandbox.io/id": "1", "a": "b"}, "Tty": true,
             "Env": ["A=b"], "Cmd": ["sleep", "1"], "Entrypoint": null},
  "HostConfig": {"Runtime": "runc", "NetworkMode": "team", "NanoCpus": 500000000,
                 "Memory": 67108864, "PidsLimit": null},
  "NetworkSettings": {"IPAddress": "", "Ports": {
      "8080/tcp": [{"HostIp": "0.0.0.0", "HostPort": "40001"}, {"HostIp": "::", "HostPort": "40001"}],
      "53/udp": [{"HostIp": "", "HostPort": "40002"}], "44772/tcp": null},
    "Networks": {"team": {"NetworkID": "n1", "IPAddress": "172.20.0.2", "Gateway": "172.20.0.1",
                          "GlobalIPv6Address": "fd00::2"}}},
  "Mounts": [{"Type": "volume", "Name": "v", "Source": "/s", "Destination": "/d", "RW": false}]})";

}  // namespace

TEST_CASE("a container's document is read") {
    auto container = decode_container(document(kContainer));
    REQUIRE(container);
    CHECK(container->id == "6b2d4533");
    CHECK(container->name == "sandbox-1");
    CHECK(container->image == "busybox:1");
    CHECK(container->image_id == "sha256:1fab");
    REQUIRE(container->created_at);
    CHECK(to_rfc3339(*container->created_at) == "2026-11-22T06:21:02.546215Z");
    CHECK(container->state.status == "paused");
    CHECK(container->state.running);
    CHECK(container->state.paused);
    CHECK(container->state.started_at);
    CHECK_FALSE(container->state.finished_at);
    REQUIRE(container->state.health);
    CHECK(container->state.health->failing_streak == 2);
    REQUIRE(container->state.health->log.size() == 1);
    CHECK(container->state.health->log[0].output == "no");
    CHECK(container->label("opensandbox.io/id") == "1");
    CHECK_FALSE(container->label("none"));
    CHECK(container->tty);
    CHECK(container->cmd == std::vector<std::string>{"sleep", "1"});
    CHECK(container->entrypoint.empty());
    CHECK(container->host_port(8080) == 40001);
    CHECK(container->host_port(44772) == 0);
    CHECK(container->host_port(53) == 0);
    CHECK(container->ports.size() == 4);
    REQUIRE(container->networks.size() == 1);
    CHECK(container->networks[0].network == "team");
    CHECK(container->networks[0].ip_address == "172.20.0.2");
    REQUIRE(container->mounts.size() == 1);
    CHECK_FALSE(container->mounts[0].read_write);
    CHECK(container->nano_cpus == 500000000);
    CHECK(container->document.at("Platform") == "linux");
}

TEST_CASE("a paused container runs, whatever the engine says") {
    auto container =
        decode_container(document(R"({"Id":"x","State":{"Paused":true,"Running":false}})"));
    REQUIRE(container);
    CHECK(container->state.running);
    CHECK_FALSE(container->state.health);
}

TEST_CASE("a document of another shape is refused by the member's name") {
    auto refuse = [](auto&& decoded, std::string_view words) {
        REQUIRE_FALSE(decoded);
        CHECK(decoded.error().code() == ErrorCode::bad_gateway);
        CHECK(decoded.error().message().find(words) != std::string::npos);
    };
    refuse(decode_container(document(R"({"Id":"x","Name":5})")), "Name: must be a string");
    refuse(decode_container(document(R"({"Name":"x"})")), "Id: must be there");
    refuse(decode_container(document("[]")), "must be an object");
    refuse(decode_container(document(R"({"Id":"x","Created":"soon"})")), "Created: must be a time");
    refuse(decode_container(document(R"({"Id":"x","State":[]})")), "State: must be an object");
    refuse(decode_container(document(R"({"Id":"x","Mounts":[1]})")), "array of objects");
    refuse(decode_container_list(document("{}")), "containers: must be an array");
    refuse(decode_image(document(R"({"Id":"x","Config":{"Labels":{"a":1}}})")), "Labels.a");
    refuse(decode_version(document("{}")), "ApiVersion");
    refuse(decode_version(document(R"({"ApiVersion":"1.x"})")), "ApiVersion");
    refuse(decode_volume_list(document(R"({"Volumes":[{}]})")), "Name: must be there");
    refuse(decode_stats(document(R"({"cpu_stats":{"cpu_usage":{"total_usage":"1"}}})")),
           "total_usage");
    refuse(decode_event(document(R"({"Actor":{"Attributes":{"a":[]}}})")), "Attributes.a");
}

TEST_CASE("a list of containers is read, also with Podman's mounts") {
    auto list = decode_container_list(document(R"([
      {"Id": "a", "Names": ["/sandbox-1", "/other/alias"], "State": "running",
       "Status": "Up 2 seconds", "Created": 1795328462, "Labels": null, "Mounts": ["/data"],
       "Ports": [{"IP": "127.0.0.1", "PrivatePort": 80, "PublicPort": 8080, "Type": "tcp"}],
       "HostConfig": {"NetworkMode": "bridge"},
       "NetworkSettings": {"Networks": {"bridge": {"IPAddress": "172.17.0.2"}}}}])"));
    REQUIRE(list);
    REQUIRE(list->size() == 1);
    const ContainerSummary& one = list->front();
    CHECK(one.names == std::vector<std::string>{"sandbox-1", "other/alias"});
    REQUIRE(one.created_at);
    CHECK(to_rfc3339(*one.created_at) == "2026-11-22T06:21:02Z");
    REQUIRE(one.ports.size() == 1);
    CHECK(one.ports[0].host_port == 8080);
    CHECK(one.network_mode == "bridge");
    CHECK(one.networks[0].ip_address == "172.17.0.2");
    CHECK(one.mounts.empty());
}

TEST_CASE("versions, runtimes and security options are read") {
    auto podman = decode_version(document(
        R"({"Version":"4.3.1","ApiVersion":"1.41","MinAPIVersion":"1.24",
            "Components":[{"Name":"Podman Engine"}]})"));
    REQUIRE(podman);
    CHECK(podman->podman);
    CHECK(podman->api_version == ApiVersion(1, 41));
    CHECK(ApiVersion(1, 9) < ApiVersion(1, 10));
    auto info = decode_info(document(
        R"({"OSType":"linux","Architecture":"x86_64","CgroupVersion":"2","NCPU":4,
            "Runtimes":{"runsc":{"path":"runsc"},"runc":{}},
            "SecurityOptions":["name=seccomp,profile=default","name=rootless"]})"));
    REQUIRE(info);
    CHECK(info->runtimes == std::vector<std::string>{"runc", "runsc"});
    CHECK(info->has_runtime("runsc"));
    CHECK_FALSE(info->has_runtime("kata"));
    CHECK(info->has_security_option("seccomp"));
    CHECK(info->has_security_option("rootless"));
    CHECK_FALSE(info->has_security_option("apparmor"));
    CHECK_FALSE(info->has_security_option("root"));
}

TEST_CASE("stats leave out what the kernel can drop, and add up the networks") {
    auto stats = decode_stats(document(
        R"({"cpu_stats":{"cpu_usage":{"total_usage":7},"system_cpu_usage":9,"online_cpus":2},
            "memory_stats":{"usage":1000,"limit":18446744073709551615,
                            "stats":{"inactive_file":400}},
            "pids_stats":{"current":3},
            "networks":{"a":{"rx_bytes":1,"tx_bytes":2},"b":{"rx_bytes":10,"tx_bytes":20}}})"));
    REQUIRE(stats);
    CHECK(stats->memory_bytes == 600);
    CHECK(stats->memory_limit_bytes == UINT64_MAX);
    CHECK(stats->received_bytes == 11);
    CHECK(stats->sent_bytes == 22);
    CHECK(stats->pids == 3);
}

TEST_CASE("events are read and filtered, in Docker's and in Podman's words") {
    auto die = decode_event(document(
        R"({"Type":"container","Action":"die","Actor":{"ID":"c1","Attributes":
            {"exitCode":"137","opensandbox.io/id":"s"}},"time":5,"timeNano":5000000001})"));
    REQUIRE(die);
    CHECK(die->exit_code() == 137);
    CHECK(die->time_ns == 5000000001);
    auto removed = decode_event(document(
        R"({"Type":"container","Action":"remove","Actor":{"ID":"c1","Attributes":null},"time":5})"));
    REQUIRE(removed);
    CHECK(removed->action == "destroy");
    CHECK(removed->time_ns == 5000000000);
    CHECK_FALSE(removed->exit_code());

    EventFilter filter;
    CHECK(filter.matches(*die));
    filter.labels = {"opensandbox.io/id"};
    CHECK(filter.matches(*die));
    CHECK_FALSE(filter.matches(*removed));
    filter.labels = {"opensandbox.io/id=other"};
    CHECK_FALSE(filter.matches(*die));
    filter.labels = {"opensandbox.io/id=s"};
    filter.actions = {"oom", "die"};
    CHECK(filter.matches(*die));
    filter.actions = {"destroy"};
    CHECK_FALSE(filter.matches(*die));
    filter.labels.clear();
    filter.types = {"image"};
    CHECK_FALSE(filter.matches(*removed));

    EngineEvent health;
    health.action = "health_status: healthy";
    EventFilter by_health;
    by_health.actions = {"health_status"};
    CHECK(by_health.matches(health));
    by_health.actions = {"health"};
    CHECK_FALSE(by_health.matches(health));
}

TEST_CASE("a line of a pull is progress or the end") {
    auto progress = decode_pull_line(document(
        R"({"status":"Downloading","progressDetail":{"current":10,"total":20},"id":"layer"})"));
    REQUIRE(progress);
    CHECK(progress->id == "layer");
    CHECK(progress->current_bytes == 10);
    CHECK(progress->total_bytes == 20);
    auto failed = decode_pull_line(
        document(R"({"errorDetail":{"code":401,"message":"no"},"error":"no entry"})"));
    REQUIRE_FALSE(failed);
    CHECK(failed.error().code() == ErrorCode::unauthenticated);
    CHECK(failed.error().message() == "no entry");
    CHECK_FALSE(decode_pull_line(document(R"({"errorDetail":{"message":"only here"}})")));
}
