#include "runtime/docker/engine/address.hpp"
#include "support/catch_result.hpp"

#include <catch2/catch.hpp>

#include <set>

using namespace opensandbox;
using namespace opensandbox::runtime::docker;

namespace {

using Files = std::set<std::string>;

Result<EngineAddress> parse(const EngineEnvironment& environment, const Files& files = {}) {
    return parse_engine_address(environment,
                                [&](const std::string& path) { return files.contains(path); });
}

Result<EngineAddress> parse_host(const std::string& host, const Files& files = {}) {
    EngineEnvironment environment;
    environment.docker_host = host;
    return parse(environment, files);
}

EngineEnvironment secured(const std::string& host) {
    EngineEnvironment environment;
    environment.docker_host = host;
    environment.docker_tls_verify = "1";
    environment.docker_cert_path = "/certs";
    return environment;
}

const Files kCertificates{"/certs/ca.pem", "/certs/cert.pem", "/certs/key.pem"};

}  // namespace

TEST_CASE("without DOCKER_HOST the engine is Docker's socket, or Podman's where only that is") {
    auto neither = parse({});
    REQUIRE(neither);
    CHECK(neither->socket_path == "/var/run/docker.sock");
    CHECK(neither->text == "unix:///var/run/docker.sock");
    CHECK(neither->is_local());
    auto podman = parse({}, {"/run/podman/podman.sock"});
    REQUIRE(podman);
    CHECK(podman->socket_path == "/run/podman/podman.sock");
    auto both = parse({}, {"/run/podman/podman.sock", "/var/run/docker.sock"});
    REQUIRE(both);
    CHECK(both->socket_path == "/var/run/docker.sock");
}

TEST_CASE("DOCKER_HOST takes sockets, tcp and http") {
    auto socket = parse_host("unix:///run/podman/podman.sock");
    REQUIRE(socket);
    CHECK(socket->socket_path == "/run/podman/podman.sock");
    auto bare = parse_host("unix://");
    REQUIRE(bare);
    CHECK(bare->socket_path == "/var/run/docker.sock");

    auto tcp = parse_host("tcp://10.0.0.1:4243");
    REQUIRE(tcp);
    CHECK(tcp->host == "10.0.0.1");
    CHECK(tcp->port == 4243);
    CHECK_FALSE(tcp->tls);
    CHECK_FALSE(tcp->is_local());
    CHECK(tcp->text == "tcp://10.0.0.1:4243");
    auto port = parse_host("tcp://engine");
    REQUIRE(port);
    CHECK(port->port == 2375);
    auto no_scheme = parse_host("engine:99");
    REQUIRE(no_scheme);
    CHECK(no_scheme->text == "tcp://engine:99");
    auto ipv6 = parse_host("tcp://[::1]:99/behind/");
    REQUIRE(ipv6);
    CHECK(ipv6->host == "::1");
    CHECK(ipv6->path_prefix == "/behind");
    CHECK(ipv6->text == "tcp://[::1]:99/behind");
}

TEST_CASE("DOCKER_TLS_VERIFY and DOCKER_CERT_PATH turn tcp into TLS") {
    auto verified = parse(secured("tcp://engine"), kCertificates);
    REQUIRE(verified);
    CHECK(verified->tls);
    CHECK(verified->verify);
    CHECK(verified->port == 2376);
    CHECK(verified->ca_file == "/certs/ca.pem");
    CHECK(verified->cert_file == "/certs/cert.pem");
    CHECK(verified->key_file == "/certs/key.pem");

    EngineEnvironment unverified = secured("tcp://engine:1");
    unverified.docker_tls_verify.clear();
    auto trusting = parse(unverified, kCertificates);
    REQUIRE(trusting);
    CHECK(trusting->tls);
    CHECK_FALSE(trusting->verify);

    EngineEnvironment at_home = secured("tcp://engine:1");
    at_home.docker_cert_path.clear();
    at_home.home = "/home/u";
    auto home = parse(at_home, {"/home/u/.docker/cert.pem", "/home/u/.docker/key.pem"});
    REQUIRE(home);
    CHECK(home->ca_file.empty());
    CHECK(home->key_file == "/home/u/.docker/key.pem");

    auto plain = parse(secured("http://engine"), kCertificates);
    REQUIRE(plain);
    CHECK_FALSE(plain->tls);
    auto socket = parse(secured("unix:///d.sock"), {});
    REQUIRE(socket);
    CHECK_FALSE(socket->tls);
}

TEST_CASE("https needs no certificates of ours and verifies against the system's roots") {
    auto https = parse_host("https://engine.example:443");
    REQUIRE(https);
    CHECK(https->tls);
    CHECK(https->verify);
    CHECK(https->ca_file.empty());
    CHECK(https->cert_file.empty());
}

TEST_CASE("an address that cannot be meant is refused with the variable and the rule") {
    auto value = GENERATE(as<std::string>(), "ssh://root@host", "npipe:////./pipe/docker", "fd://",
                          "/var/run/docker.sock", "unix://relative.sock", "tcp://", "tcp://:2375",
                          "tcp://host:0", "tcp://host:65536", "tcp://host:12x", "tcp://[::1",
                          "tcp://::1:2375", "tcp://[::1]2375", "tcp://user@host:1", "tcp://h:1?x=1",
                          "tcp://h:1/a b", "tcp://h\n:1");
    CAPTURE(value);
    auto refused = parse_host(value);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code() == ErrorCode::invalid_argument);
    CHECK(refused.error().message().starts_with("DOCKER_HOST=" + value + ": must "));
}

TEST_CASE("a socket path that no kernel takes is refused") {
    auto refused = parse_host("unix:///" + std::string(200, 'x'));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message().find("at most 107 bytes") != std::string::npos);
}

TEST_CASE("a certificate folder without its files is refused by name") {
    auto refused = parse(secured("tcp://engine"), {"/certs/ca.pem", "/certs/cert.pem"});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message() ==
          "DOCKER_CERT_PATH=/certs: must be a folder that holds cert.pem and key.pem; missing is "
          "key.pem");
}
