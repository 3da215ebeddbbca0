#include "kube/access/kubeconfig.hpp"

#include "base/base64.hpp"
#include "support/catch_result.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::kube;

namespace {

/// A file of one cluster, one user and one context, all named "main".
KubeconfigFile file(const std::string& cluster, const std::string& user,
                    const std::string& context = "cluster: main, user: main") {
    return {"/home/bob/.kube/config",
            "apiVersion: v1\nkind: Config\ncurrent-context: main\n"
            "clusters: [{name: main, cluster: {" +
                cluster + "}}]\nusers: [{name: main, user: {" + user +
                "}}]\ncontexts: [{name: main, context: {" + context + "}}]\n"};
}

const std::string server = "server: 'https://10.0.0.1:6443'";

/// What a user with such a plugin is refused for.
std::string plugin_refusal(const std::string& members) {
    auto cluster = read_kubeconfig({file(server, "exec: {" + members + "}")});
    REQUIRE_FALSE(cluster);
    CHECK(cluster.error().code() == ErrorCode::invalid_argument);
    const std::string place = "/home/bob/.kube/config: users: main: exec: ";
    const std::string message = cluster.error().message();
    REQUIRE_THAT(message, Catch::StartsWith(place));
    return message.substr(place.size());
}

const std::string plugin_version = "apiVersion: client.authentication.k8s.io/v1, command: login";

}  // namespace

TEST_CASE("the current context says cluster, user and namespace") {
    const KubeconfigFile both{"/etc/kube.yaml", R"(
apiVersion: v1
kind: Config
preferences: {}
current-context: far
clusters:
- name: near
  cluster: {server: 'http://127.0.0.1:8080/'}
- name: far
  cluster: {server: https://far.example/k8s/clusters/c-1/}
users:
- name: alice
  user: {token: a-token}
- name: bob
  user: {username: bob, password: b:c}
contexts:
- name: near
  context: {cluster: near, user: bob, namespace: work}
- name: far
  context: {cluster: far, user: alice}
- name: nobody
  context: {cluster: near}
)"};
    auto far = read_kubeconfig({both});
    REQUIRE(far);
    CHECK(far->server == "https://far.example/k8s/clusters/c-1");
    CHECK(far->token == "a-token");
    CHECK(far->name_space == "default");
    CHECK(far->tls == net::TlsSettings());
    CHECK_FALSE(far->plugin);
    auto near = read_kubeconfig({both}, "near");
    REQUIRE(near);
    CHECK(near->server == "http://127.0.0.1:8080");
    CHECK(near->username == "bob");
    CHECK(near->password == "b:c");
    CHECK(near->name_space == "work");
    CHECK(near->token.empty());
    auto nobody = read_kubeconfig({both}, "nobody");
    REQUIRE(nobody);
    CHECK(nobody->username.empty());
}

TEST_CASE("a kubeconfig may be JSON") {
    auto cluster = read_kubeconfig(
        {{"/config",
          R"({"current-context":"c","clusters":[{"name":"k","cluster":{"server":"https://k"}}],)"
          R"("contexts":[{"name":"c","context":{"cluster":"k"}}]})"}});
    REQUIRE(cluster);
    CHECK(cluster->server == "https://k");
}

TEST_CASE("of several files the first that names something counts, and entries may be spread") {
    const KubeconfigFile first{"/one/config", R"(
clusters: [{name: main, cluster: {server: 'https://first', certificate-authority: ca.pem}}]
current-context: chosen
)"};
    const KubeconfigFile second{"/two/config", R"(
current-context: other
clusters:
- {name: main, cluster: {server: 'https://second'}}
- {name: other, cluster: {server: 'https://other'}}
users: [{name: me, user: {tokenFile: token}}]
contexts:
- {name: chosen, context: {cluster: main, user: me}}
- {name: other, context: {cluster: other}}
)"};
    const KubeconfigFile empty{"/three/config", "# nothing\n"};
    auto cluster = read_kubeconfig({empty, first, second});
    REQUIRE(cluster);
    CHECK(cluster->server == "https://first");
    // A path belongs to the file that it stands in.
    CHECK(cluster->tls.ca_file == "/one/ca.pem");
    CHECK(cluster->token_file == "/two/token");
    CHECK(read_kubeconfig({second, first})->server == "https://other");
    CHECK(read_kubeconfig({second, first}, "chosen")->server == "https://second");
}

TEST_CASE("paths in a kubeconfig are relative to its folder") {
    auto cluster = read_kubeconfig(
        {file(server + ", certificate-authority: ../ca.pem",
              "client-certificate: ./certs/me.pem, client-key: /keys/me.pem, tokenFile: token, "
              "exec: {" +
                  plugin_version + "}")});
    REQUIRE(cluster);
    CHECK(cluster->tls.ca_file == "/home/bob/ca.pem");
    CHECK(cluster->tls.cert_file == "/home/bob/.kube/certs/me.pem");
    CHECK(cluster->tls.key_file == "/keys/me.pem");
    CHECK(cluster->token_file == "/home/bob/.kube/token");
    // A program without a folder is looked for on PATH.
    REQUIRE(cluster->plugin);
    CHECK(cluster->plugin->command == "login");
    auto beside = read_kubeconfig(
        {file(server, "exec: {apiVersion: client.authentication.k8s.io/v1, command: bin/login}")});
    REQUIRE(beside);
    CHECK(beside->plugin->command == "/home/bob/.kube/bin/login");
}

TEST_CASE("certificates and keys may stand in a kubeconfig themselves") {
    auto cluster = read_kubeconfig(
        {file(server +
                  ", tls-server-name: api.internal, insecure-skip-tls-verify: true, "
                  "certificate-authority-data: " +
                  to_base64("the authority"),
              "client-certificate-data: " + to_base64("the certificate") +
                  ", client-key-data: " + to_base64("the key"))});
    REQUIRE(cluster);
    CHECK(cluster->tls.ca_pem == "the authority");
    CHECK(cluster->tls.cert_pem == "the certificate");
    CHECK(cluster->tls.key_pem == "the key");
    CHECK(cluster->tls.server_name == "api.internal");
    CHECK_FALSE(cluster->tls.verify);
}

TEST_CASE("a credential plugin is read with all that it is called with") {
    auto cluster = read_kubeconfig({file(server, R"(exec: {
        apiVersion: client.authentication.k8s.io/v1beta1, command: login, args: [--for, "1"],
        env: [{name: REGION, value: eu}, {name: EMPTY, value: ""}], interactiveMode: IfAvailable,
        provideClusterInfo: true, installHint: get it at login.example})")});
    REQUIRE(cluster);
    REQUIRE(cluster->plugin);
    const CredentialPlugin& plugin = *cluster->plugin;
    CHECK(plugin.api_version == "client.authentication.k8s.io/v1beta1");
    CHECK(plugin.command == "login");
    CHECK(plugin.arguments == std::vector<std::string>{"--for", "1"});
    CHECK(plugin.environment ==
          std::vector<std::pair<std::string, std::string>>{{"REGION", "eu"}, {"EMPTY", ""}});
    CHECK(plugin.wants_cluster);
    CHECK(plugin.install_hint == "get it at login.example");
}

TEST_CASE("a credential plugin that is wrong is refused by the name of the member") {
    CHECK(plugin_refusal("command: login") ==
          "apiVersion: must be client.authentication.k8s.io/v1 or "
          "client.authentication.k8s.io/v1beta1");
    CHECK(plugin_refusal("apiVersion: client.authentication.k8s.io/v1alpha1, command: login")
              .starts_with("apiVersion: must be "));
    CHECK(plugin_refusal("apiVersion: client.authentication.k8s.io/v1") == "command: is missing");
    CHECK(plugin_refusal("apiVersion: 1") == "apiVersion: must be a string");
    CHECK(plugin_refusal(plugin_version + ", args: all").starts_with("args: must be "));
    CHECK(plugin_refusal(plugin_version + ", env: {A: b}") == "env: must be a list");
    CHECK(plugin_refusal(plugin_version + ", env: [A]") == "env: must hold objects");
    CHECK(plugin_refusal(plugin_version + ", env: [{value: x}]") == "env: name: is missing");
    CHECK(plugin_refusal(plugin_version + ", env: [{name: A, value: 1}]") ==
          "env: value: must be a string");
    CHECK(plugin_refusal(plugin_version + ", provideClusterInfo: maybe")
              .starts_with("provideClusterInfo: must be "));
    CHECK(plugin_refusal(plugin_version + ", interactiveMode: Always")
              .starts_with("interactiveMode: must be Never or IfAvailable"));
}

TEST_CASE("what is wrong in a kubeconfig is named with its file, entry and member") {
    const std::string at = "/home/bob/.kube/config: ";
    struct Wrong {
        std::string cluster;
        std::string user;
        std::string error;
    };
    const Wrong wrong = GENERATE_COPY(values<Wrong>({
        {"", "", "clusters: main: server: is missing"},
        {"server: 6443", "", "clusters: main: server: must be a string"},
        {"server: 'ftp://x'", "", "clusters: main: server: must be an http:// or https:// URL"},
        {server + ", proxy-url: 'http://p'", "", "clusters: main: proxy-url: is not supported"},
        {server + ", insecure-skip-tls-verify: 'yes'", "",
         "clusters: main: insecure-skip-tls-verify: must be "},
        {server + ", certificate-authority-data: '*'", "",
         "clusters: main: certificate-authority-data: is no base64"},
        {server, "client-certificate-data: a", "users: main: client-certificate-data: is no base6"},
        {server, "client-key-data: a", "users: main: client-key-data: is no base64"},
        {server, "token: 'two words'", "users: main: token: must be visible ASCII characters"},
        {server, "token: 12345", "users: main: token: must be a string"},
        {server, "auth-provider: {name: gcp}", "users: main: auth-provider: is not supported"},
        {server, "as: root", "users: main: as: is not supported"},
        {server, "as-uid: '0'", "users: main: as-uid: is not supported"},
        {server, "as-groups: [wheel]", "users: main: as-groups: is not supported"},
        {server, "as-user-extra: {a: [b]}", "users: main: as-user-extra: is not supported"},
        {server, "exec: login", "users: main: exec: must be an object"},
    }));
    CAPTURE(wrong.error);
    auto cluster = read_kubeconfig({file(wrong.cluster, wrong.user)});
    REQUIRE_FALSE(cluster);
    CHECK(cluster.error().code() == ErrorCode::invalid_argument);
    CHECK_THAT(cluster.error().message(), Catch::StartsWith(at + wrong.error));
}

TEST_CASE("a kubeconfig of another shape is refused") {
    struct Wrong {
        std::string text;
        std::string error;
    };
    const Wrong wrong = GENERATE(values<Wrong>({
        {"- a", "/c: must be an object"},
        {"{", "/c: line "},
        {"current-context: [a]", "/c: current-context: must be a string"},
        {"clusters: {a: b}", "/c: clusters: must be a list"},
        {"users: [a]", "/c: users: must hold objects"},
        {"contexts: [{context: {}}]", "/c: contexts: name: is missing"},
        {"contexts: [{name: 1}]", "/c: contexts: name: must be a string"},
        {"contexts: [{name: a, context: b}]", "/c: contexts: a: context: must be an object"},
        {"clusters: []", "kubeconfig: current-context: is missing"},
        {"{current-context: a, contexts: [{name: a, context: {user: b}}]}",
         "/c: contexts: a: cluster: is missing"},
        {"{current-context: a, contexts: [{name: a, context: {cluster: b, namespace: 1}}]}",
         "/c: contexts: a: namespace: must be a string"},
    }));
    CAPTURE(wrong.text);
    auto cluster = read_kubeconfig({{"/c", wrong.text}});
    REQUIRE_FALSE(cluster);
    CHECK(cluster.error().code() == ErrorCode::invalid_argument);
    CHECK_THAT(cluster.error().message(), Catch::StartsWith(wrong.error));
}

TEST_CASE("a context, cluster or user that is not there is named") {
    auto context = read_kubeconfig({file(server, "")}, "other");
    REQUIRE_FALSE(context);
    CHECK(context.error().code() == ErrorCode::not_found);
    CHECK(context.error().message() == "kubeconfig: there is no context \"other\"");
    auto cluster = read_kubeconfig({file(server, "", "cluster: other")});
    REQUIRE_FALSE(cluster);
    CHECK(cluster.error().message() == "kubeconfig: there is no cluster \"other\"");
    auto user = read_kubeconfig({file(server, "", "cluster: main, user: other")});
    REQUIRE_FALSE(user);
    CHECK(user.error().code() == ErrorCode::not_found);
    CHECK(user.error().message() == "kubeconfig: there is no user \"other\"");
}

TEST_CASE("errors of a kubeconfig repeat no secrets") {
    const std::string secret = "hunter2";
    for (const auto& [cluster, user] :
         {std::pair<std::string, std::string>("server: 'https://me:" + secret + "@host'", ""),
          {server, "token: 'a " + secret + "'"},
          {server, "client-key-data: '" + secret + "'"},
          {server, "password: [" + secret + "]"}}) {
        auto read = read_kubeconfig({file(cluster, user)});
        REQUIRE_FALSE(read);
        CAPTURE(read.error().message());
        CHECK(read.error().message().find(secret) == std::string::npos);
    }
}
