#include "egress/guard/api.hpp"

#include "base/identifier.hpp"
#include "egress/guard/reply.hpp"

#include <charconv>

namespace opensandbox::egress {

namespace {

constexpr std::string_view kPolicy = "/policy";
constexpr std::string_view kDenials = "/policy/denials";
constexpr std::string_view kVault = "/credential-vault";
constexpr std::string_view kActive = "/credential-vault/_active";

constexpr std::size_t kDenialsPage = 100;
constexpr std::size_t kMaxDenialsPage = 1000;

/// A number of the query; `otherwise` when it is not there, nothing when it is none.
std::optional<std::uint64_t> number(const http::Query& query, std::string_view name,
                                    std::uint64_t otherwise) {
    const auto text = query.get(name);
    if (!text) return otherwise;
    std::uint64_t value = 0;
    const auto [end, failed] = std::from_chars(text->data(), text->data() + text->size(), value);
    if (failed != std::errc() || end != text->data() + text->size()) return std::nullopt;
    return value;
}

http::Response health(const std::optional<std::string>& unhealthy) {
    if (unhealthy) return text_error(503, *unhealthy);
    return http::Response(200, "text/plain; charset=utf-8", "ok");
}

}  // namespace

Awaitable<void> Api::handle(http::Exchange& exchange) {
    http::Response response = co_await answer(exchange);
    co_await exchange.respond(std::move(response));
}

bool Api::authorized(const http::Exchange& exchange) const {
    if (services_.token.empty()) return true;
    const auto given = exchange.request().fields.get(kAuthField);
    return given && equal_constant_time(*given, services_.token);
}

Awaitable<http::Response> Api::answer(http::Exchange& exchange) {
    const http::RequestHead& request = exchange.request();
    const std::string_view path = request.path();
    const bool get = request.method == "GET";
    if (path == "/healthz") {
        if (!get && request.method != "HEAD") co_return method_not_allowed("GET");
        co_return health(services_.unhealthy ? services_.unhealthy() : std::nullopt);
    }
    if (path == kActive) co_return get ? text_error(403, "forbidden") : method_not_allowed("GET");
    const bool denials = path == kDenials;
    const bool metrics = path == "/metrics" && services_.metrics;
    const bool vault = path == kVault || path.starts_with("/credential-vault/");
    if (path != kPolicy && !denials && !metrics && !vault) co_return text_error(404, "not found");
    if (!authorized(exchange)) co_return text_error(401, "unauthorized");
    if (vault) co_return co_await answer_vault(exchange);
    if (path == kPolicy) co_return co_await answer_policy(exchange);
    if (!get) co_return method_not_allowed("GET");
    if (denials) co_return read_denials(request.query());
    co_return http::Response(200, "text/plain; version=0.0.4; charset=utf-8", services_.metrics());
}

http::Response Api::read_denials(std::string_view query) const {
    const http::Query parameters(query);
    const auto since = number(parameters, "since", 0);
    const auto limit = number(parameters, "limit", kDenialsPage);
    if (!since) return text_error(400, "since: must be a sequence number");
    if (!limit || *limit == 0 || *limit > kMaxDenialsPage) {
        return text_error(400, "limit: must be from 1 to 1000");
    }
    return http::json_response(200, to_json(services_.denials->since(*since, *limit)));
}

}  // namespace opensandbox::egress
