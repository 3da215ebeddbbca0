#include "egress/audit/denial_webhook.hpp"
#include "support/catch_result.hpp"
#include "support/http_fixture.hpp"

using namespace opensandbox;
using namespace opensandbox::egress;
using namespace http::test;
using namespace std::chrono_literals;

namespace {

const std::chrono::system_clock::time_point kTime{std::chrono::milliseconds(1782351465123)};

/// A receiver that answers with one status after another, the last for good.
struct Receiver {
    explicit Receiver(std::vector<int> answers) : statuses(std::move(answers)) {}

    Awaitable<void> take(http::Exchange& exchange) {
        auto body = co_await http::read_all(exchange.body(), 1 << 20);
        targets.push_back(exchange.request().target);
        bodies.push_back(body ? *body : "");
        const std::size_t at = std::min(bodies.size(), statuses.size()) - 1;
        http::Response response(statuses[at], "text/plain", "");
        co_await exchange.respond(std::move(response));
    }

    std::unique_ptr<DenialWebhook> webhook(std::string_view path = "/deny?key=1") {
        WebhookSettings settings;
        settings.url = "http://127.0.0.1:" + std::to_string(server.port) + std::string(path);
        settings.sandbox_id = "box";
        settings.pauses = {1ms, 1ms, 1ms};
        return DenialWebhook::make(loop.executor(), settings).value();
    }
    void wait_for(const std::function<bool()>& condition) {
        loop.run([&]() -> Awaitable<void> {
            while (!condition())
                co_await net::sleep_for(1ms);
        });
    }

    std::vector<int> statuses;
    std::vector<std::string> bodies;
    std::vector<std::string> targets;
    Loop loop;
    TestServer server{loop, [this](http::Exchange& exchange) { return take(exchange); }};
};

}  // namespace

TEST_CASE("a webhook is told of a denial", "[egress]") {
    Receiver receiver({204});
    auto webhook = receiver.webhook();
    webhook->tell("Evil.Example.", kTime);
    receiver.wait_for([&] { return webhook->counts().delivered == 1; });
    REQUIRE(receiver.bodies.size() == 1);
    CHECK(receiver.targets[0] == "/deny?key=1");
    CHECK(receiver.bodies[0] == R"({"hostname":"evil.example","timestamp":"2026-06-25T01:37:45Z",)"
                                R"("source":"opensandbox-egress","sandboxId":"box"})");
}

TEST_CASE("a webhook tries again after errors of the server, not of its own", "[egress]") {
    Receiver again({500, 503, 200});
    auto patient = again.webhook();
    patient->tell("a.test", kTime);
    again.wait_for([&] { return patient->counts().delivered == 1; });
    CHECK(again.bodies.size() == 3);

    Receiver never({500});
    auto hopeless = never.webhook();
    hopeless->tell("a.test", kTime);
    never.wait_for([&] { return hopeless->counts().failed == 1; });
    CHECK(never.bodies.size() == 4);

    Receiver wrong({404});
    auto refused = wrong.webhook();
    refused->tell("a.test", kTime);
    wrong.wait_for([&] { return refused->counts().failed == 1; });
    CHECK(wrong.bodies.size() == 1);
}

TEST_CASE("a webhook is told of a target once in a while, and drops what it cannot hold",
          "[egress]") {
    Receiver receiver({200});
    auto webhook = receiver.webhook();
    webhook->tell("a.test", kTime);
    webhook->tell("A.test.", kTime);
    CHECK(webhook->counts().repeated == 1);
    for (int i = 0; i < 300; ++i)
        webhook->tell("n" + std::to_string(i) + ".test", kTime);
    CHECK(webhook->counts().dropped > 0);
    const auto kept = 301 - webhook->counts().dropped;
    CHECK(kept >= 256);
    receiver.wait_for([&] { return webhook->counts().delivered == kept; });
}

TEST_CASE("a webhook needs a URL", "[egress]") {
    Loop loop;
    WebhookSettings settings;
    settings.url = "ftp://host/";
    CHECK_FALSE(DenialWebhook::make(loop.executor(), settings));
}
