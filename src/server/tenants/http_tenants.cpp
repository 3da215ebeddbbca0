#include "server/tenants/http_tenants.hpp"

#include "base/log.hpp"
#include "base/scope_exit.hpp"
#include "json/document.hpp"
#include "net/task.hpp"
#include "server/auth.hpp"

namespace opensandbox::server {
namespace {

constexpr std::size_t kMaxAnswer = 64 * 1024;
constexpr std::size_t kMaxKnown = 10'000;
/// Wrong keys must not become a flood of questions.
constexpr std::size_t kMaxAsking = 64;
constexpr std::int64_t kMaxTtl = 86'400;

http::ClientOptions client_options(const Config& config) {
    http::ClientOptions options;
    options.connect_timeout = std::chrono::seconds(config.tenants.timeout_seconds);
    options.head_timeout = std::chrono::seconds(config.tenants.timeout_seconds);
    return options;
}

Error unavailable(std::string message) {
    return {ErrorCode::unavailable, "the tenant provider " + std::move(message)};
}

}  // namespace

Result<std::pair<std::string, std::chrono::seconds>> parse_tenant_answer(std::string_view body) {
    auto garbled = [](std::string_view why) {
        return Error(ErrorCode::bad_gateway, std::string(why));
    };
    auto document = json::parse(body);
    if (!document || !document->is_object()) return garbled("answered no JSON object");
    auto space = json::get_string(document->get_object(), "namespace");
    if (!space || !*space || !is_namespace(**space)) return garbled("answered no namespace");
    auto ttl = json::get_integer(document->get_object(), "ttl");
    if (!ttl || ttl->value_or(0) < 0) return garbled("answered a wrong ttl");
    constexpr std::int64_t kUsualTtl = 30;
    std::chrono::seconds seconds(std::min(ttl->value_or(kUsualTtl), kMaxTtl));
    return std::pair(std::move(**space), seconds);
}

HttpTenants::HttpTenants(asio::any_io_executor executor, http::Url url, const Config& config)
    : executor_(executor),
      url_(std::move(url)),
      client_(std::move(executor), client_options(config)),
      auth_header_(config.tenants.auth_header),
      auth_token_(config.tenants.auth_token),
      timeout_(config.tenants.timeout_seconds),
      max_stale_(config.tenants.max_stale_seconds),
      quota_(config.quota) {}

Awaitable<Result<std::string>> HttpTenants::authenticate(std::string key) {
    std::string digest = key_digest(key);
    auto known = known_.find(digest);
    if (known != known_.end() && Clock::now() < known->second.fresh_until) {
        co_return known->second.space;
    }
    if (auto found = asking_.find(digest); found != asking_.end()) {
        auto asking = found->second;
        co_await asking->done.wait();
        co_return *asking->outcome;
    }
    // A key that was somebody's before is asked about however many others are not.
    bool stranger = known == known_.end();
    if (stranger && asking_.size() >= kMaxAsking) co_return unavailable("is asked too much");
    auto asking = std::make_shared<Asking>(executor_);
    asking->outcome.emplace(unavailable("was not waited for"));
    asking_.emplace(digest, asking);
    ScopeExit asked([this, digest, asking] {
        asking_.erase(digest);
        asking->done.open();
    });
    auto answer = co_await ask(std::move(key));
    asking->outcome.emplace(settle(digest, std::move(answer)));
    co_return *asking->outcome;
}

Awaitable<Result<HttpTenants::Answer>> HttpTenants::ask(std::string key) {
    http::Fields fields;
    fields.add(kApiKeyField, key);
    fields.add("Accept", "application/json");
    if (!auth_header_.empty()) fields.set(auth_header_, auth_token_);
    std::string target = url_.path.empty() ? "/" : url_.path;
    http::ClientRequest request("GET", std::move(target), std::move(fields));
    auto response = co_await client_.send(url_.origin, std::move(request));
    if (!response) co_return unavailable("did not answer: " + response.error().message());
    int status = (*response)->head().status;
    if (status == 401) co_return Error(ErrorCode::unauthenticated, "no tenant has this key");
    if (status != 200) co_return unavailable("answered " + std::to_string(status));
    http::ClientResponse& answered = **response;
    net::Deadline deadline(executor_, timeout_, [&answered] { answered.abort(); });
    auto body = co_await http::read_all(answered.body(), kMaxAnswer);
    if (!body) co_return unavailable("broke off: " + body.error().message());
    auto parsed = parse_tenant_answer(*body);
    if (!parsed) co_return unavailable(parsed.error().message());
    Answer answer;
    answer.space = std::move(parsed->first);
    answer.ttl = parsed->second;
    co_return answer;
}

Result<std::string> HttpTenants::settle(const std::string& digest, Result<Answer> answer) {
    auto now = Clock::now();
    if (answer) {
        make_room();
        Known known{answer->space, now + answer->ttl, now + answer->ttl + max_stale_};
        known_.insert_or_assign(digest, std::move(known));
        return answer->space;
    }
    if (answer.error().code() == ErrorCode::unauthenticated) {
        known_.erase(digest);
        return answer.error();
    }
    auto known = known_.find(digest);
    if (known != known_.end() && now < known->second.usable_until) {
        log::warn("tenants: an old answer counts",
                  {{"error", answer.error().message()}, {"namespace", known->second.space}});
        return known->second.space;
    }
    return answer.error();
}

void HttpTenants::make_room() {
    if (known_.size() < kMaxKnown) return;
    auto now = Clock::now();
    std::erase_if(known_, [now](const auto& entry) { return entry.second.fresh_until <= now; });
    if (known_.size() >= kMaxKnown) known_.erase(known_.begin());
}

}  // namespace opensandbox::server
