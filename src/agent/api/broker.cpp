#include "agent/api/broker.hpp"

#include "agent/api/routes.hpp"
#include "agent/ground/loop.hpp"
#include "agent/ground/reply.hpp"
#include "agent/ground/signals.hpp"
#include "agent/isolated/broker_settings.hpp"
#include "base/log.hpp"
#include "http/server.hpp"

#include <sys/prctl.h>
#include <sys/stat.h>

#include <cerrno>
#include <exception>
#include <malloc.h>
#include <optional>
#include <signal.h>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

class Broker {
  public:
    explicit Broker(BrokerOptions options) : options_(std::move(options)) {}
    Broker(const Broker&) = delete;
    Broker& operator=(const Broker&) = delete;
    ~Broker() {
        if (services_) services_->files.finish();
        loop_.shutdown();
    }

    int run() {
        // The threads for files come and go; an arena each would stay.
        ::mallopt(M_ARENA_MAX, 1);
        auto executor = loop_.get_executor();
        auto signals = Signals::take(executor, [this](int number) { signalled(number); });
        if (!signals) return fail(signals.error());
        ::umask(022);
        if (::chdir("/") != 0) return fail(Error::from_errno(errno, "chdir /"));
        auto listener = net::adopt_listener(executor, std::move(options_.listener));
        if (!listener) return fail(listener.error());
        server_.emplace(executor, [this](http::Exchange& exchange) { return answer(exchange); });
        server_->serve(std::move(*listener));
        loop_.run();
        return 0;
    }

  private:
    static int fail(const Error& error) {
        log::error("isolation broker cannot start", {{"error", error.message()}});
        return 1;
    }

    void signalled(int number) {
        if (number == SIGCHLD) {
            if (services_ && services_->reaper.collect()) {
                asio::post(loop_, [this] { signalled(SIGCHLD); });
            }
        } else if (number == SIGTERM || number == SIGINT) {
            loop_.stop();
        }
    }

    Awaitable<void> answer(http::Exchange& exchange) {
        http::RequestHead& request = exchange.request();
        if (request.path() == kBrokerSettingsTarget) return settle(exchange);
        if (!services_) return reply_error(exchange, 503, code::kNotSupported, "no settings yet");
        std::string_view path = request.path();
        while (path.size() > 1 && path.ends_with('/'))
            path.remove_suffix(1);
        auto match = router_.lookup(request.method, path);
        if (!match.handler) {
            return reply_error(exchange, 404, code::kNotSupported, "no such route");
        }
        exchange.parameters = std::move(match.parameters);
        return (*match.handler)(exchange);
    }

    /// Once: whoever runs in sessions must not become another user by a later word.
    Awaitable<void> settle(http::Exchange& exchange) {
        Result<std::string> text = co_await http::read_all(exchange.body(), kMaxJsonBody);
        Result<BrokerSettings> settings =
            text ? parse_broker_settings(*text) : Result<BrokerSettings>(text.error());
        if (!settings) {
            co_await reply_error(exchange, settings.error());
            co_return;
        }
        if (!services_) begin(std::move(*settings));
        co_await reply_empty(exchange);
    }

    void begin(BrokerSettings settings) {
        agent_.environment = std::move(settings.environment);
        agent_.uid = settings.uid;
        agent_.gid = settings.gid;
        agent_.init = true;
        services_.emplace(loop_.get_executor(), agent_);
        IsolationConfig config;
        config.filter = std::move(options_.filter);
        config.capabilities = options_.capabilities;
        services_->isolation.configure(std::move(config));
        add_isolated_routes(router_, *services_);
    }

    BrokerOptions options_;
    AgentOptions agent_;
    Loop loop_;
    std::optional<Services> services_;
    http::Router router_;
    std::optional<http::Server> server_;
};

}  // namespace

int run_broker(BrokerOptions options) {
    try {
        Broker broker(std::move(options));
        return broker.run();
    } catch (const std::exception& failure) {
        log::error("isolation broker failed", {{"error", failure.what()}});
        return 1;
    }
}

}  // namespace opensandbox::agent
