#pragma once

#include "http/client.hpp"
#include "http/url.hpp"
#include "net/latch.hpp"
#include "server/tenants/tenants.hpp"

#include <chrono>
#include <optional>
#include <unordered_map>

namespace opensandbox::server {

/// Tenants that a service knows: it is asked with the caller's key and answers
/// `{"namespace", "ttl"}`. Answers are kept for `ttl` seconds (30) and, while the service does not
/// answer, for `tenants.max_stale_seconds` more. One question at a time for each key.
class HttpTenants final : public Tenants {
  public:
    HttpTenants(asio::any_io_executor executor, http::Url url, const Config& config);

    Awaitable<Result<std::string>> authenticate(std::string key) override;
    [[nodiscard]] model::Quota quota(std::string_view) const override { return quota_; }
    void stop() override {}

  private:
    using Clock = std::chrono::steady_clock;
    struct Known {
        std::string space;
        Clock::time_point fresh_until;
        Clock::time_point usable_until;
    };
    /// One question in flight and those who wait for what becomes of it.
    struct Asking {
        explicit Asking(asio::any_io_executor executor) : done(std::move(executor)) {}
        net::Latch done;
        std::optional<Result<std::string>> outcome;
    };
    struct Answer {
        std::string space;
        std::chrono::seconds ttl{30};
    };

    Awaitable<Result<Answer>> ask(std::string key);
    Result<std::string> settle(const std::string& digest, Result<Answer> answer);
    void make_room();

    asio::any_io_executor executor_;
    http::Url url_;
    http::Client client_;
    std::string auth_header_;
    std::string auth_token_;
    std::chrono::seconds timeout_;
    std::chrono::seconds max_stale_;
    model::Quota quota_;
    std::unordered_map<std::string, Known> known_;  ///< by digest of the key
    std::unordered_map<std::string, std::shared_ptr<Asking>> asking_;
};

/// `{"namespace": …, "ttl"?: …}`: the namespace and how long it holds; `bad_gateway` for anything
/// else. Pure.
Result<std::pair<std::string, std::chrono::seconds>> parse_tenant_answer(std::string_view body);

}  // namespace opensandbox::server
