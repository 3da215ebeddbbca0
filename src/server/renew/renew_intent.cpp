#include "server/renew/renew_intent.hpp"

#include "json/document.hpp"

namespace opensandbox::server {
namespace {

constexpr std::size_t kMaxPayload = 64 * 1024;
constexpr std::size_t kMaxId = 256;
constexpr std::int64_t kMaxPort = 65535;

}  // namespace

std::optional<RenewIntent> parse_renew_intent(std::string_view payload, Timestamp now) {
    if (payload.size() > kMaxPayload) return std::nullopt;
    auto document = json::parse(payload);
    if (!document || !document->is_object()) return std::nullopt;
    const json::object& object = document->get_object();
    auto id = json::get_string(object, "sandbox_id");
    auto observed = json::get_string(object, "observed_at");
    auto port = json::get_integer(object, "port");
    auto uri = json::get_string(object, "request_uri");
    auto space = json::get_string(object, "namespace");
    if (!id || !*id || !observed || !*observed || !port || !uri || !space) return std::nullopt;
    if ((*id)->empty() || (*id)->size() > kMaxId) return std::nullopt;
    if (*port && (**port < 1 || **port > kMaxPort)) return std::nullopt;
    auto at = parse_rfc3339(**observed);
    if (!at || *at < now - kIntentLifetime) return std::nullopt;
    RenewIntent intent;
    intent.sandbox_id = std::move(**id);
    intent.observed_at = *at;
    intent.tenant = space->value_or("");
    return intent;
}

}  // namespace opensandbox::server
