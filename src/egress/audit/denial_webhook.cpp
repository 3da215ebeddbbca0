#include "egress/audit/denial_webhook.hpp"

#include "base/clock.hpp"
#include "base/json_string.hpp"
#include "base/log.hpp"
#include "egress/policy/target.hpp"
#include "http/url.hpp"

namespace opensandbox::egress {

namespace {

using Clock = std::chrono::steady_clock;

/// Targets that are remembered so as not to tell of them again.
constexpr std::size_t kMostRemembered = 10'000;

std::string normal(std::string_view target) {
    if (target.ends_with('.')) target.remove_suffix(1);
    return lower_case(target);
}

}  // namespace

std::string webhook_body(std::string_view target, std::chrono::system_clock::time_point time,
                         std::string_view sandbox_id) {
    std::string body = "{\"hostname\":";
    append_json_string(body, normal(target));
    body += ",\"timestamp\":";
    append_json_string(body, to_rfc3339(std::chrono::floor<std::chrono::seconds>(time)));
    body += ",\"source\":\"opensandbox-egress\",\"sandboxId\":";
    append_json_string(body, sandbox_id);
    return body + "}";
}

struct DenialWebhook::State {
    State(asio::any_io_executor e, WebhookSettings s, http::Origin o, std::string t)
        : executor(std::move(e)),
          settings(std::move(s)),
          origin(std::move(o)),
          target(std::move(t)) {}

    bool repeated(const std::string& name, Clock::time_point now);
    static Awaitable<void> run(std::shared_ptr<State> self);
    Awaitable<bool> deliver(std::string body);
    /// The status; an error when there was no answer.
    Awaitable<Result<int>> attempt(std::string body);

    asio::any_io_executor executor;
    WebhookSettings settings;
    http::Origin origin;
    std::string target;
    std::deque<std::string> queue;
    std::unordered_map<std::string, Clock::time_point> told;
    Counts counts;
    bool running = false;
    bool stopped = false;
};

bool DenialWebhook::State::repeated(const std::string& name, Clock::time_point now) {
    const auto found = told.find(name);
    if (found != told.end() && found->second + settings.once_in > now) return true;
    if (told.size() >= kMostRemembered) {
        std::erase_if(told,
                      [&](const auto& item) { return item.second + settings.once_in <= now; });
        if (told.size() >= kMostRemembered) told.clear();
    }
    told[name] = now;
    return false;
}

Awaitable<Result<int>> DenialWebhook::State::attempt(std::string body) {
    Post post;
    post.origin = origin;
    post.target = target;
    post.fields.set("Content-Type", "application/json");
    post.body = std::move(body);
    post.timeout = settings.timeout;
    co_return co_await send_post(executor, settings.connect, std::move(post));
}

Awaitable<bool> DenialWebhook::State::deliver(std::string body) {
    for (std::size_t attempts = 0;; ++attempts) {
        const Result<int> status = co_await attempt(body);
        if (stopped) co_return false;
        if (status && *status < 300) co_return true;
        const bool final = (status && *status < 500) || attempts >= settings.pauses.size();
        if (final) {
            const std::string why =
                status ? "status " + std::to_string(*status) : status.error().message();
            log::warn("the denial webhook failed", {{"error", why}});
            co_return false;
        }
        co_await net::sleep_for(settings.pauses[attempts]);
        if (stopped) co_return false;
    }
}

Awaitable<void> DenialWebhook::State::run(std::shared_ptr<State> self) {
    while (!self->queue.empty() && !self->stopped) {
        std::string body = std::move(self->queue.front());
        self->queue.pop_front();
        const bool delivered = co_await self->deliver(std::move(body));
        ++(delivered ? self->counts.delivered : self->counts.failed);
    }
    self->running = false;
}

Result<std::unique_ptr<DenialWebhook>> DenialWebhook::make(asio::any_io_executor executor,
                                                           WebhookSettings settings) {
    const std::size_t mark = settings.url.find('?');
    Result<http::Url> url = http::parse_url(std::string_view(settings.url).substr(0, mark));
    if (!url) return url.error();
    std::string target = url->path.empty() ? "/" : url->path;
    if (mark != std::string::npos) target += settings.url.substr(mark);
    auto state = std::make_shared<State>(std::move(executor), std::move(settings),
                                         std::move(url->origin), std::move(target));
    return std::unique_ptr<DenialWebhook>(new DenialWebhook(std::move(state)));
}

DenialWebhook::~DenialWebhook() {
    state_->stopped = true;
}

const DenialWebhook::Counts& DenialWebhook::counts() const {
    return state_->counts;
}

void DenialWebhook::tell(std::string_view target, std::chrono::system_clock::time_point time) {
    State& state = *state_;
    if (state.repeated(normal(target), Clock::now())) {
        ++state.counts.repeated;
        return;
    }
    if (state.queue.size() >= state.settings.queue) {
        // Once for each run of losses: a line for each would be as many as there are denials.
        if (state.counts.dropped++ % state.settings.queue == 0) {
            log::warn("the denial webhook's queue is full", {{"dropped", state.counts.dropped}});
        }
        return;
    }
    state.queue.push_back(webhook_body(target, time, state.settings.sandbox_id));
    if (state.running) return;
    state.running = true;
    net::spawn(state.executor, State::run(state_), "denial webhook");
}

}  // namespace opensandbox::egress
