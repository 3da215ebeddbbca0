#include "kube/access/plugin_answer.hpp"

#include "base/base64.hpp"
#include "json/document.hpp"
#include "support/catch_result.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::kube;

namespace {

CredentialPlugin plugin_of(const std::string& version) {
    CredentialPlugin plugin;
    plugin.api_version = "client.authentication.k8s.io/" + version;
    return plugin;
}

/// An answer of version v1 with these members of its status.
std::string answer_with(const std::string& members) {
    return R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1",)"
           R"("status":{)" +
           members + "}}";
}

std::string refusal(const std::string& text) {
    auto answer = read_plugin_answer(text, plugin_of("v1"));
    REQUIRE_FALSE(answer);
    CHECK(answer.error().code() == ErrorCode::invalid_argument);
    return answer.error().message();
}

}  // namespace

TEST_CASE("a plugin is told the version, and that nobody can be asked") {
    auto question = json::parse(plugin_question(plugin_of("v1beta1"), Cluster()));
    REQUIRE(question);
    CHECK(*question == json::value{{"apiVersion", "client.authentication.k8s.io/v1beta1"},
                                   {"kind", "ExecCredential"},
                                   {"spec", {{"interactive", false}}}});
}

TEST_CASE("a plugin that wants to know its cluster is told of it, and none of our secrets") {
    CredentialPlugin plugin = plugin_of("v1");
    plugin.wants_cluster = true;
    Cluster cluster;
    cluster.server = "https://k.example";
    cluster.token = "secret";
    cluster.tls.key_pem = "secret";
    const json::value bare = json::parse(plugin_question(plugin, cluster)).value();
    CHECK(bare.at("spec").at("cluster") == json::value{{"server", "https://k.example"}});
    cluster.tls.server_name = "api.internal";
    cluster.tls.verify = false;
    cluster.tls.ca_pem = "the authority";
    const std::string text = plugin_question(plugin, cluster);
    CHECK(json::parse(text).value().at("spec").at("cluster") ==
          json::value{{"server", "https://k.example"},
                      {"tls-server-name", "api.internal"},
                      {"insecure-skip-tls-verify", true},
                      {"certificate-authority-data", to_base64("the authority")}});
    CHECK(text.find("secret") == std::string::npos);
}

TEST_CASE("a plugin answers with a token, a certificate with its key, or both") {
    auto token = read_plugin_answer(answer_with(R"("token":"t","more":1)") + "\n", plugin_of("v1"));
    REQUIRE(token);
    CHECK(token->token == "t");
    CHECK(token->cert_pem.empty());
    CHECK_FALSE(token->expires_at);
    auto both = read_plugin_answer(
        answer_with(R"("token":"t","clientCertificateData":"c","clientKeyData":"k",)"
                    R"("expirationTimestamp":"2030-01-02T03:04:05+01:00")"),
        plugin_of("v1"));
    REQUIRE(both);
    CHECK(both->cert_pem == "c");
    CHECK(both->key_pem == "k");
    CHECK(both->expires_at == parse_rfc3339("2030-01-02T02:04:05Z"));
    auto certificate = read_plugin_answer(
        answer_with(R"("token":null,"clientCertificateData":"c","clientKeyData":"k")"),
        plugin_of("v1"));
    REQUIRE(certificate);
    CHECK(certificate->token.empty());
}

TEST_CASE("an answer of a plugin that is wrong is refused by the name of the member") {
    CHECK(refusal("") == "must be one JSON object");
    CHECK(refusal("[]") == "must be one JSON object");
    CHECK(refusal(answer_with("\"token\":\"t\"") + "{}") == "must be one JSON object");
    CHECK(refusal(R"({"kind":"ExecCredential"})") ==
          "apiVersion: must be client.authentication.k8s.io/v1");
    CHECK(refusal(R"({"apiVersion":"client.authentication.k8s.io/v1beta1",)"
                  R"("kind":"ExecCredential","status":{"token":"t"}})") ==
          "apiVersion: must be client.authentication.k8s.io/v1");
    CHECK(refusal(R"({"apiVersion":"client.authentication.k8s.io/v1","kind":"Pod"})") ==
          "kind: must be ExecCredential");
    CHECK(refusal(R"({"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential"})") ==
          "status: must be an object");
    CHECK(refusal(answer_with("")) == "status: has neither a token nor a certificate");
    CHECK(refusal(answer_with(R"("token":1)")) == "status: token: must be a string");
    CHECK(refusal(answer_with(R"("token":"a b")")) ==
          "status: token: must be visible ASCII characters");
    CHECK(refusal(answer_with(R"("token":"t","clientKeyData":"k")")) ==
          "status: clientCertificateData and clientKeyData: one of them is missing");
    CHECK(refusal(answer_with(R"("clientCertificateData":"c")")) ==
          "status: clientCertificateData and clientKeyData: one of them is missing");
    CHECK(refusal(answer_with(R"("token":"t","expirationTimestamp":"soon")")) ==
          "status: expirationTimestamp: must be an RFC 3339 time");
}

TEST_CASE("errors of a plugin's answer repeat nothing of it") {
    const std::string secret = "hunter2";
    for (const std::string& text : {secret, "{\"" + secret + "\":", "\"" + secret + "\"",
                                    answer_with("\"token\":[\"" + secret + "\"]"),
                                    answer_with("\"token\":\"a " + secret + "\""),
                                    answer_with("\"clientKeyData\":\"" + secret + "\""),
                                    answer_with("\"expirationTimestamp\":\"" + secret + "\""),
                                    std::string(R"({"apiVersion":")") + secret + "\"}"}) {
        CAPTURE(text);
        CHECK(refusal(text).find(secret) == std::string::npos);
    }
}
