#include "kube/access/plugin_answer.hpp"

#include "base/base64.hpp"
#include "json/fields.hpp"
#include "kube/access/bearer_token.hpp"

namespace opensandbox::kube {
namespace {

constexpr const char* kKind = "ExecCredential";

constexpr auto kStatusMembers = [](auto& walker, auto& answer) {
    walker.put(json::Field("token").may_lack(), answer.token);
    walker.put(json::Field("clientCertificateData").may_lack(), answer.cert_pem);
    walker.put(json::Field("clientKeyData").may_lack(), answer.key_pem);
    walker.put("expirationTimestamp", answer.expires_at);
    walker.check(answer.token.empty() || is_bearer_token(answer.token), "token", kTokenRule);
};

json::object cluster_of(const Cluster& cluster) {
    json::object made{{"server", cluster.server}};
    if (!cluster.tls.server_name.empty()) made["tls-server-name"] = cluster.tls.server_name;
    if (!cluster.tls.verify) made["insecure-skip-tls-verify"] = true;
    if (!cluster.tls.ca_pem.empty())
        made["certificate-authority-data"] = to_base64(cluster.tls.ca_pem);
    return made;
}

}  // namespace

std::string plugin_question(const CredentialPlugin& plugin, const Cluster& cluster) {
    json::object spec{{"interactive", false}};
    if (plugin.wants_cluster) spec["cluster"] = cluster_of(cluster);
    return json::serialize(json::object{
        {"apiVersion", plugin.api_version}, {"kind", kKind}, {"spec", std::move(spec)}});
}

Result<PluginAnswer> read_plugin_answer(std::string_view text, const CredentialPlugin& plugin) {
    auto document = json::parse(text);
    if (!document || !document->is_object()) return invalid("must be one JSON object");
    const json::object& from = document->get_object();
    for (const auto& [name, wanted] :
         {std::pair<std::string_view, std::string>("apiVersion", plugin.api_version),
          {"kind", kKind}}) {
        auto found = json::get_string(from, name);
        if (!found || found->value_or("") != wanted)
            return invalid(std::string(name) + ": must be " + wanted);
    }
    const json::value* status = json::find(from, "status");
    if (!status || !status->is_object()) return invalid("status: must be an object");
    auto answer = json::read_fields<PluginAnswer>(status->get_object(), kStatusMembers);
    if (!answer) return answer.error().within("status");
    if (answer->cert_pem.empty() != answer->key_pem.empty())
        return invalid("status: clientCertificateData and clientKeyData: one of them is missing");
    if (answer->token.empty() && answer->cert_pem.empty())
        return invalid("status: has neither a token nor a certificate");
    return answer;
}

}  // namespace opensandbox::kube
