#include "mcp/role.hpp"

#include "base/log.hpp"
#include "http/server.hpp"
#include "mcp/http_transport.hpp"
#include "mcp/options.hpp"
#include "mcp/stdio_transport.hpp"
#include "version.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <unistd.h>

namespace opensandbox::mcp {

namespace {

constexpr std::chrono::seconds kGrace{5};
constexpr int kWrongUsage = 2;

std::optional<std::string> variable(std::string_view name) {
    const char* value = std::getenv(std::string(name).c_str());
    if (value == nullptr) return std::nullopt;
    return value;
}

int fail(std::string_view message, int code) {
    std::cerr << "opensandbox mcp: " << message << '\n';
    return code;
}

WorkspaceLimits workspace_limits(const Options& options) {
    WorkspaceLimits limits;
    limits.output = options.max_output;
    return limits;
}

/// Ends the program's work in order when a signal asks for it; at once at the second one.
class Stop {
  public:
    Stop(asio::io_context& loop, std::function<Awaitable<void>()> work)
        : signals_(loop, SIGINT, SIGTERM), loop_(loop), work_(std::move(work)) {
        wait();
    }

  private:
    void wait() {
        signals_.async_wait([this](const boost::system::error_code& failed, int) {
            if (failed) return;
            if (std::exchange(stopping_, true)) return loop_.stop();
            net::spawn(loop_.get_executor(), end(), "stop");
            wait();
        });
    }
    Awaitable<void> end() {
        co_await work_();
        loop_.stop();
    }

    asio::signal_set signals_;
    asio::io_context& loop_;
    std::function<Awaitable<void>()> work_;
    bool stopping_ = false;
};

Awaitable<void> serve_until_end(asio::io_context& loop, std::shared_ptr<Session> session) {
    co_await serve_stdio(loop.get_executor(), std::move(session));
    loop.stop();
}

Awaitable<void> end_session(std::shared_ptr<Session> session) {
    session->cancel_all();
    co_await session->idle_within(kGrace);
}

int run_stdio(const Options& options, const ToolTable& tools, sdk::Connection server,
              asio::io_context& loop) {
    auto session = std::make_shared<Session>(loop.get_executor(), tools, std::move(server),
                                             workspace_limits(options), options.max_calls);
    Stop stop(loop, [session] { return end_session(session); });
    net::spawn(loop.get_executor(), serve_until_end(loop, session), "stdio");
    loop.run();
    return 0;
}

Awaitable<void> end_server(http::Server& server, HttpTransport& transport) {
    co_await transport.end_all(kGrace);
    co_await server.drain(std::chrono::seconds(1));
}

int run_http(const Options& options, const ToolTable& tools, sdk::Connection server,
             asio::io_context& loop) {
    const std::string host = options.host == "localhost" ? "127.0.0.1" : options.host;
    if (!is_loopback(host) && options.auth_token.empty() && !options.allow_unauthenticated) {
        return fail("--host " + host +
                        " is reached from other machines: set --auth-token (or "
                        "OPENSANDBOX_MCP_AUTH_TOKEN), or --allow-unauthenticated to let anybody in",
                    kWrongUsage);
    }
    auto listener = net::listen_tcp(loop.get_executor(), host, options.port);
    if (!listener) return fail(listener.error().message(), 1);
    HttpTransport::Limits limits;
    limits.sessions = options.max_sessions;
    limits.idle = options.session_idle;
    HttpTransport transport(
        loop.get_executor(), AccessRules(host, options.auth_token, options.allowed_origins), limits,
        [&] {
            return std::make_shared<Session>(loop.get_executor(), tools, server,
                                             workspace_limits(options), options.max_calls);
        });
    http::Server web(loop.get_executor(),
                     [&](http::Exchange& exchange) { return transport.handle(exchange); });
    Stop stop(loop, [&] { return end_server(web, transport); });
    const std::uint16_t port = (*listener)->port();
    web.serve(std::move(*listener));
    net::spawn(loop.get_executor(), transport.sweep(), "sessions");
    log::info("MCP is served", {{"host", host}, {"port", port}, {"path", "/mcp"}});
    loop.run();
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    log::configure(log::Level::info, log::Format::text, STDERR_FILENO);
    const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
    auto options = parse_options(words, variable);
    if (!options) {
        return fail(options.error().message() + " (see opensandbox mcp --help)", kWrongUsage);
    }
    if (options->help) {
        std::cout << help();
        return 0;
    }
    auto config = sdk::ConnectionConfig::discover(options->server);
    if (!config) return fail(config.error().message(), 1);
    asio::io_context loop(1);
    auto server = sdk::Connection::open(loop.get_executor(), std::move(*config));
    if (!server) return fail(server.error().message(), 1);
    const ToolTable tools;
    return options->over_http ? run_http(*options, tools, std::move(*server), loop)
                              : run_stdio(*options, tools, std::move(*server), loop);
}

}  // namespace opensandbox::mcp
