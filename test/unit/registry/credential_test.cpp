#include "image/staging.hpp"
#include "registry/authentication.hpp"
#include "registry/docker_config.hpp"
#include "registry/keychain.hpp"
#include "support/catch_result.hpp"
#include "support/scratch_directory.hpp"

#include <catch2/catch.hpp>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

using namespace opensandbox;
using namespace opensandbox::registry;

namespace {

void write(const std::filesystem::path& path, const std::string& text) {
    std::ofstream(path) << text;
}

/// PATH with a directory in front, for as long as this lives.
class OnPath {
  public:
    explicit OnPath(const std::filesystem::path& directory) : before_(std::getenv("PATH")) {
        ::setenv("PATH", (directory.string() + ":" + before_).c_str(), 1);
    }
    ~OnPath() { ::setenv("PATH", before_.c_str(), 1); }

  private:
    std::string before_;
};

void add_program(const std::filesystem::path& path, const std::string& script) {
    write(path, "#!/bin/sh\n" + script);
    REQUIRE(::chmod(path.c_str(), 0755) == 0);
}

}  // namespace

TEST_CASE("basic authorization is user and password in base64") {
    CHECK(basic_authorization(Credential("user", "pass")) == "Basic dXNlcjpwYXNz");
}

TEST_CASE("logins are kept in a file for its owner only") {
    test_support::ScratchDirectory scratch;
    auto file = CredentialFile::in(scratch.path / "state");
    REQUIRE(file.find("docker.io"));
    CHECK_FALSE(file.find("docker.io")->has_value());
    REQUIRE(file.put("docker.io", Credential("me", "s\"ecret")));
    REQUIRE(file.put("registry.example:5000", Credential("you", "other")));
    struct stat status{};
    REQUIRE(::stat(file.path().c_str(), &status) == 0);
    CHECK((status.st_mode & 07777) == 0600);
    CHECK((*file.find("docker.io"))->password == "s\"ecret");
    CHECK(file.remove("docker.io").value());
    CHECK_FALSE(file.remove("docker.io").value());
    CHECK_FALSE(file.find("docker.io")->has_value());
    CHECK((*file.find("registry.example:5000"))->username == "you");
    write(file.path(), "[]");
    CHECK_FALSE(file.find("docker.io"));
    CHECK_FALSE(file.put("docker.io", Credential("me", "x")));
}

TEST_CASE("Docker's file is read with its logins and programs") {
    const std::string text = R"({"auths":{)"
                             R"("https://index.docker.io/v1/":{"auth":"bWU6czpl"},)"
                             R"("registry.example":{"identitytoken":"tok","auth":"eDp5"},)"
                             R"("empty.example":{}},)"
                             R"("credHelpers":{"helped.example":"desk"},"credsStore":"store"})";
    auto docker = find_docker_login(text, "docker.io");
    REQUIRE(docker);
    REQUIRE(docker->credential);
    CHECK(docker->credential->username == "me");
    CHECK(docker->credential->password == "s:e");
    CHECK(docker->program == "store");
    CHECK(docker->server == "https://index.docker.io/v1/");
    CHECK(find_docker_login(text, "registry.example")->credential->identity_token == "tok");
    CHECK_FALSE(find_docker_login(text, "empty.example")->credential);
    CHECK(find_docker_login(text, "helped.example")->program == "desk");
    CHECK_FALSE(find_docker_login(R"({"auths":{"a.example":{"auth":"***"}}})", "a.example"));
    CHECK_FALSE(find_docker_login("[]", "a.example"));
    CHECK_FALSE(find_docker_login(R"({"auths":[]})", "a.example"));
}

TEST_CASE("a credential program gives user and secret, or a token") {
    auto login = parse_program_answer(R"({"ServerURL":"x","Username":"me","Secret":"s"})");
    REQUIRE(login);
    CHECK(login->username == "me");
    CHECK(login->password == "s");
    auto token = parse_program_answer(R"({"Username":"<token>","Secret":"t"})");
    REQUIRE(token);
    CHECK(token->identity_token == "t");
    CHECK(token->username.empty());
    CHECK_FALSE(parse_program_answer("no"));
}

TEST_CASE("our own login wins over Docker's, a program's over what its file says") {
    test_support::ScratchDirectory scratch;
    OnPath path(scratch.path);
    add_program(scratch.path / "docker-credential-mine",
                R"(printf '{"Username":"p","Secret":"s"}')");
    add_program(scratch.path / "docker-credential-broken", "exit 1");
    write(scratch.path / "config.json",
          R"({"auths":{"a.example":{"auth":"bWU6cw=="},"b.example":{"auth":"bWU6cw=="}},)"
          R"("credHelpers":{"b.example":"mine","a.example":"broken"}})");
    auto own = CredentialFile::in(scratch.path);
    Keychain keychain(own, scratch.path / "config.json");
    CHECK(keychain.find("a.example").username == "me");
    CHECK(keychain.find("b.example").username == "p");
    CHECK(keychain.find("c.example").is_anonymous());
    REQUIRE(own.put("b.example", Credential("own", "x")));
    CHECK(keychain.find("b.example").username == "own");
    write(scratch.path / "config.json", "broken");
    CHECK(keychain.find("a.example").is_anonymous());
}

TEST_CASE("a token and its lifetime are read") {
    CHECK(parse_token(R"({"token":"a","expires_in":300})")->lifetime == std::chrono::seconds(300));
    CHECK(parse_token(R"({"access_token":"b"})")->value == "b");
    CHECK(parse_token(R"({"access_token":"b"})")->lifetime == std::chrono::seconds(60));
    for (const char* text : {"", "[]", "{}", R"({"token":""})", R"({"token":"a b"})",
                             R"({"token":"a\r\nX: y"})", R"({"token":1})"}) {
        CAPTURE(text);
        CHECK_FALSE(parse_token(text));
    }
}
