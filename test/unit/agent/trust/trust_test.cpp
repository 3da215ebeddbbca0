#include "agent/trust/egress_certificate.hpp"
#include "support/tls_server.hpp"
#include "unit/agent/agent_process.hpp"

#include <catch2/catch.hpp>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

using namespace opensandbox;
using namespace opensandbox::agent;
using namespace opensandbox::agent::testing;
using namespace opensandbox::test_support;

namespace {

/// Answers every request with one word.
void answer(SSL* session) {
    std::string request;
    char byte = 0;
    while (request.find("\r\n\r\n") == std::string::npos && SSL_read(session, &byte, 1) == 1)
        request += byte;
    constexpr std::string_view kAnswer =
        "HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\nreached";
    SSL_write(session, kAnswer.data(), static_cast<int>(kAnswer.size()));
    SSL_shutdown(session);
}

std::string in_quotes(std::string_view text) {
    return "'" + std::string(text) + "'";
}

/// What a shell command says in this environment and in no other.
std::string said(const Environment& environment, const std::string& command) {
    std::string line = "env -i";
    for (const std::string& entry : environment.entries())
        line += " " + in_quotes(entry);
    line += " timeout 600 sh -c " + in_quotes(command) + " 2>&1";
    std::unique_ptr<FILE, OpensslDeleter<::pclose>> pipe(::popen(line.c_str(), "r"));
    REQUIRE(pipe);
    std::string text;
    char piece[4096];
    while (std::size_t got = std::fread(piece, 1, sizeof piece, pipe.get()))
        text.append(piece, got);
    return text;
}

/// Kept from one run to the next: the first builds the whole standard library.
std::string go_cache() {
    if (const char* given = std::getenv("GOCACHE")) return given;
    const char* home = std::getenv("HOME");
    return (home ? std::string(home) : std::string("/tmp")) + "/.cache/go-build";
}

/// A sandbox's files with a root of its own and the certificate of an interceptor, and servers
/// that have certificates of either.
struct TrustWorld {
    TrustWorld() {
        std::filesystem::create_directories(scratch.at("opt/opensandbox"));
        std::filesystem::create_directories(scratch.at("etc/ssl/certs"));
        root.write_certificate(scratch.at("etc/ssl/certs/ca-certificates.crt"));
        interceptor.write_certificate(scratch.at("opt/opensandbox/mitmproxy-ca-cert.pem"));
        EgressCertificate(scratch.path()).trust(trusting);
    }
    [[nodiscard]] static std::string url(const TlsServer& server) {
        return "https://127.0.0.1:" + std::to_string(server.port) + "/";
    }
    /// A client reaches what is intercepted and, if it is one whose roots the sandbox's files are,
    /// what is not; without what the bootstrap says it reaches nothing. `command` gets the URL.
    void check(const std::string& command, bool reads_roots = true) const {
        INFO(command);
        CHECK(said(trusting, command + " " + url(intercepted)).find("reached") !=
              std::string::npos);
        if (reads_roots) {
            CHECK(said(trusting, command + " " + url(direct)).find("reached") != std::string::npos);
        }
        CHECK(said(plain, command + " " + url(intercepted)).find("reached") == std::string::npos);
    }

    Scratch scratch;
    Identity root = issue("public root", "", nullptr);
    Identity interceptor = issue("interceptor", "", nullptr);
    TlsServer direct{issue("direct", "IP:127.0.0.1", &root), answer};
    TlsServer intercepted{issue("intercepted", "IP:127.0.0.1", &interceptor), answer};
    Environment plain{{{"PATH", "/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin"},
                       {"HOME", scratch.path()},
                       {"GOCACHE", go_cache()},
                       {"CGO_ENABLED", "0"},
                       {"GOTOOLCHAIN", "local"}}};
    Environment trusting = plain;
};

}  // namespace

TEST_CASE("curl, git and wget trust what the bootstrap says") {
    const TrustWorld world;
    world.check("curl -sS");
    world.check("wget -qO-");
    // What answers is no repository, but it is asked.
    const std::string git = "cd / && git ls-remote " + TrustWorld::url(world.intercepted);
    const std::string trusting = said(world.trusting, git);
    INFO(trusting);
    CHECK(trusting.find("unable to access") == std::string::npos);
    CHECK(said(world.plain, git).find("unable to access") != std::string::npos);
}

TEST_CASE("Python trusts what the bootstrap says, with and without requests") {
    const TrustWorld world;
    const std::string own = world.scratch.file(
        "own.py",
        "import sys, urllib.request\nprint(urllib.request.urlopen(sys.argv[1]).read().decode())\n");
    const std::string requests = world.scratch.file(
        "by_requests.py", "import sys, requests\nprint(requests.get(sys.argv[1]).text)\n");
    world.check("/usr/bin/python3 " + own);
    world.check("/usr/bin/python3 " + requests);
}

TEST_CASE("Node trusts what the bootstrap says") {
    const TrustWorld world;
    const std::string program =
        world.scratch.file("get.js",
                           "require(\"https\").get(process.argv[2], r => r.pipe(process.stdout))\n"
                           "  .on(\"error\", e => console.log(e.code))\n");
    world.check("node " + program, false);
}

namespace {

std::string java_program(const TrustWorld& world) {
    return world.scratch.file("Get.java",
                              "import java.net.URI;\nimport java.nio.charset.StandardCharsets;\n"
                              "public class Get {\n"
                              "    public static void main(String[] a) throws Exception {\n"
                              "        try (var in = URI.create(a[0]).toURL().openStream()) {\n"
                              "            System.out.println(new String(in.readAllBytes(), "
                              "StandardCharsets.UTF_8));\n"
                              "        }\n    }\n}\n");
}

}  // namespace

TEST_CASE("Java trusts what the bootstrap says") {
    const TrustWorld world;
    world.check("java " + java_program(world));
}

TEST_CASE("a JDK's own store gets the certificate, if it is of the kind that can") {
    const TrustWorld world;
    const std::string roots = world.scratch.at("etc/ssl/certs/ca-certificates.crt");
    const std::string store = world.scratch.at("jdk/lib/security/cacerts");
    std::filesystem::create_directories(world.scratch.at("jdk/lib/security"));
    const std::string keytool = "keytool -storepass changeit -keystore " + store;
    Environment environment({{"PATH", "/none"}, {"JAVA_HOME", "/jdk"}});
    for (const char* kind : {"JKS", "PKCS12"}) {
        INFO(kind);
        std::filesystem::remove(store);
        INFO(said(world.plain, keytool + " -importcert -noprompt -alias first -storetype " + kind +
                                   " -file " + roots));
        EgressCertificate(world.scratch.path()).trust(environment);
        const bool jks = std::string_view(kind) == "JKS";
        CHECK(environment.get("JAVA_TOOL_OPTIONS").has_value() == !jks);
        const std::string listed = said(world.plain, keytool + " -list");
        INFO(listed);
        CHECK((listed.find("debian:opensandbox-mitmproxy-ca.pem") != std::string::npos) == jks);
        CHECK(listed.find(jks ? "contains 2 entries" : "contains 1 entry") != std::string::npos);
        if (!jks) continue;
        const std::string java =
            "java -Djavax.net.ssl.trustStore=" + store + " " + java_program(world) + " ";
        for (const TlsServer* server : {&world.intercepted, &world.direct})
            CHECK(said(world.plain, java + world.url(*server)).find("reached") !=
                  std::string::npos);
        // Once more: it is there already.
        const auto size = std::filesystem::file_size(store);
        EgressCertificate(world.scratch.path()).trust(environment);
        CHECK(std::filesystem::file_size(store) == size);
    }
}

TEST_CASE("the system's store of Debian gets the certificate without its tool") {
    const TrustWorld world;
    const std::string certificates = world.scratch.at("etc/ssl/certs");
    const std::string bundle = certificates + "/ca-certificates.crt";
    const std::string own = world.scratch.at("usr/local/share/ca-certificates");
    std::filesystem::create_directories(own);
    // As packages of Debian and Alpine have them: what they do is done without them.
    std::filesystem::create_directories(world.scratch.at("etc/ca-certificates/update.d"));
    for (const char* hook : {"certhash", "jks-keystore", "java-cacerts", ".keep"})
        world.scratch.file(std::string("etc/ca-certificates/update.d/") + hook, "#!/bin/sh\n");
    Environment environment({{"PATH", "/none"}});
    const auto trust = [&] { EgressCertificate(world.scratch.path()).trust(environment); };
    trust();
    CHECK_FALSE(environment.get("WGETRC"));
    for (const TlsServer* server : {&world.intercepted, &world.direct}) {
        CHECK(said(world.plain, "curl -sS --cacert " + bundle + " " + world.url(*server)) ==
              "reached");
    }
    const std::string certificate = EgressCertificate(world.scratch.path()).certificate();
    CHECK(said(world.plain, "openssl verify -CApath " + certificates + " " + certificate) ==
          certificate + ": OK\n");
    CHECK(std::filesystem::exists(own + "/opensandbox-mitmproxy-ca.crt"));
    const auto entries = [&] {
        return std::distance(std::filesystem::directory_iterator(certificates), {});
    };
    const auto size = std::filesystem::file_size(bundle);
    CHECK(entries() == 3);
    trust();
    CHECK(std::filesystem::file_size(bundle) == size);
    CHECK(entries() == 3);
}

TEST_CASE("a store that others follow is left to its tool") {
    const TrustWorld world;
    const std::string bundle = world.scratch.at("etc/ssl/certs/ca-certificates.crt");
    std::filesystem::create_directories(world.scratch.at("usr/local/share/ca-certificates"));
    std::filesystem::create_directories(world.scratch.at("etc/ca-certificates/update.d"));
    world.scratch.file("etc/ca-certificates/update.d/mono-keystore", "#!/bin/sh\n");
    const auto size = std::filesystem::file_size(bundle);
    Environment environment({{"PATH", "/none"}});
    EgressCertificate(world.scratch.path()).trust(environment);
    CHECK(std::filesystem::file_size(bundle) == size);
    CHECK(environment.get("WGETRC"));
}

TEST_CASE("Go trusts what the bootstrap says") {
    const TrustWorld world;
    const std::string source = world.scratch.file(
        "get.go",
        "package main\n\nimport (\n\t\"io\"\n\t\"net/http\"\n\t\"os\"\n)\n\n"
        "func main() {\n\tanswer, failed := http.Get(os.Args[1])\n"
        "\tif failed != nil {\n\t\tpanic(failed)\n\t}\n\tio.Copy(os.Stdout, answer.Body)\n}\n");
    const std::string program = world.scratch.at("get");
    INFO(said(world.plain, "go build -o " + program + " " + source));
    REQUIRE(std::filesystem::exists(program));
    world.check(program);
}

TEST_CASE("what a sandbox has set itself stays") {
    TrustWorld world;
    Environment environment({{"PATH", "/usr/bin:/bin"},
                             {"CURL_CA_BUNDLE", "/mine.pem"},
                             {"JAVA_HOME", "/jdk"},
                             {"JAVA_TOOL_OPTIONS", "-Xmx1g"}});
    EgressCertificate(world.scratch.path()).trust(environment);
    CHECK(environment.get("CURL_CA_BUNDLE") == "/mine.pem");
    CHECK(environment.get("PIP_CERT") == EgressCertificate(world.scratch.path()).merged());
    const std::string options(environment.get("JAVA_TOOL_OPTIONS").value_or(""));
    CHECK(options.starts_with("-Xmx1g -Djavax.net.ssl.trustStore="));
    // Once more: it is named already.
    EgressCertificate(world.scratch.path()).trust(environment);
    CHECK(environment.get("JAVA_TOOL_OPTIONS") == options);
    Environment without({{"PATH", "/none"}});
    EgressCertificate(world.scratch.path()).trust(without);
    CHECK_FALSE(without.get("JAVA_TOOL_OPTIONS"));
}
