#include "runtime/docker/remembered_egress.hpp"

#include "json/document.hpp"
#include "model/policy_request.hpp"

namespace opensandbox::runtime::docker {
namespace {

constexpr std::string_view kPolicy = "networkPolicy";
constexpr std::string_view kProxy = "credentialProxy";
constexpr std::string_view kBound = "credentialBound";
constexpr std::string_view kEnvironment = "env";

Error unreadable_egress(const std::string& what) {
    return {ErrorCode::bad_gateway, what};
}

Result<json::object> parse_object(std::string_view text) {
    auto document = json::parse(text);
    if (!document) return unreadable_egress(document.error().message());
    if (!document->is_object()) return unreadable_egress("no JSON object");
    return std::move(document->get_object());
}

Status read_request(const json::object& from, SandboxSpec& spec) {
    auto proxy = json::get_bool(from, kProxy);
    auto bound = json::get_bool(from, kBound);
    auto environment = json::get_string_map(from, kEnvironment);
    if (!proxy) return unreadable_egress(proxy.error().message());
    if (!bound) return unreadable_egress(bound.error().message());
    if (!environment) return unreadable_egress(environment.error().message());
    spec.credential_proxy = proxy->value_or(false);
    spec.credential_bound = bound->value_or(false);
    spec.egress_env = environment->value_or(model::StringMap());
    return {};
}

}  // namespace

std::string describe_egress(const SandboxSpec& spec) {
    json::object out;
    out[kProxy] = spec.credential_proxy;
    out[kBound] = spec.credential_bound;
    out[kEnvironment] = json::string_object(spec.egress_env);
    return json::serialize(out);
}

Result<std::string> remember_egress(std::string_view sidecar_label, std::string_view answer) {
    auto remembered = parse_object(sidecar_label.empty() ? "{}" : sidecar_label);
    if (!remembered) return remembered.error().within("the egress sidecar's label");
    auto told = parse_object(answer);
    if (!told) return told.error().within("the egress sidecar's policy");
    const json::value* policy = json::find(*told, "policy");
    if (!policy) return unreadable_egress("the egress sidecar's answer has no policy");
    (*remembered)[kPolicy] = *policy;
    std::string label = json::serialize(*remembered);
    SandboxSpec read;
    if (auto readable = guard_alike(label, read); !readable) return readable.error();
    return label;
}

Status guard_alike(std::string_view image_label, SandboxSpec& spec) {
    auto remembered = parse_object(image_label);
    if (!remembered) return remembered.error().within("the snapshot's egress");
    const json::value* policy = json::find(*remembered, kPolicy);
    if (!policy) return unreadable_egress("the snapshot's egress has no policy");
    auto read = model::parse_policy_body(json::serialize(*policy));
    if (!read) return unreadable_egress(read.error().message()).within("the snapshot's egress");
    if (auto request = read_request(*remembered, spec); !request) {
        return request.error().within("the snapshot's egress");
    }
    spec.network_policy = std::move(*read);
    return {};
}

std::string label_instruction(std::string_view name, std::string_view text) {
    std::string out = "LABEL " + std::string(name) + "=\"";
    for (const char c : text) {
        if (c == '"' || c == '\\' || c == '$') out += '\\';
        out += c;
    }
    return out + '"';
}

}  // namespace opensandbox::runtime::docker
