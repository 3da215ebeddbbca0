#include "runtime/agent_greeting.hpp"

#include "http/access_path.hpp"
#include "net/task.hpp"

#include <algorithm>

namespace opensandbox::runtime {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kFirstStep{1};
constexpr std::chrono::milliseconds kLongestStep{50};
constexpr int kUnauthorized = 401;
constexpr int kForbidden = 403;

/// The status of the answer, 0 when there is none.
Awaitable<int> ask(http::Client& client, model::AgentAddress address, std::string path,
                   http::Fields fields) {
    fields.set("Connection", "close");
    http::Origin origin(std::move(address.host), address.port);
    http::ClientRequest request("GET", std::move(path), std::move(fields));
    auto response = co_await client.send(origin, std::move(request));
    if (!response) co_return 0;
    int status = response.value()->head().status;
    response.value()->abort();
    co_return status;
}

bool is_success(int status) {
    constexpr int kClass = 100;
    return status / kClass == 2;
}

}  // namespace

http::ClientOptions probe_options() {
    constexpr std::chrono::milliseconds kConnect{1000};
    constexpr std::chrono::milliseconds kHead{3000};
    http::ClientOptions options;
    options.connect_timeout = kConnect;
    options.head_timeout = kHead;
    options.max_idle_per_origin = 0;
    return options;
}

Awaitable<Greeting> await_agent(http::Client& client, std::vector<model::AgentAddress> addresses,
                                std::string token, std::function<bool()> ended,
                                std::chrono::milliseconds limit) {
    auto deadline = Clock::now() + limit;
    auto step = kFirstStep;
    while (true) {
        for (const auto& address : addresses) {
            if (ended()) co_return Greeting::ended;
            http::Fields fields{{http::kAccessTokenField, token}};
            int status = co_await ask(client, address, "/ping", std::move(fields));
            if (is_success(status)) co_return Greeting::ready;
            if (status == kUnauthorized || status == kForbidden) co_return Greeting::stranger;
        }
        if (ended()) co_return Greeting::ended;
        if (Clock::now() >= deadline) co_return Greeting::timed_out;
        co_await net::sleep_for(step);
        step = std::min(step + step / 4 + kFirstStep, kLongestStep);
    }
}

Awaitable<bool> await_success(http::Client& client, model::AgentAddress address, std::string path,
                              http::Fields fields, std::function<bool()> ended,
                              std::chrono::milliseconds step, std::chrono::milliseconds limit) {
    auto deadline = Clock::now() + limit;
    while (true) {
        http::Fields copy = fields;
        int status = co_await ask(client, address, path, std::move(copy));
        if (is_success(status)) co_return true;
        if (ended() || Clock::now() >= deadline) co_return false;
        co_await net::sleep_for(step);
    }
}

}  // namespace opensandbox::runtime
