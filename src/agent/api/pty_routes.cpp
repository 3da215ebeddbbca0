#include "agent/api/routes.hpp"
#include "agent/files/replacement_file.hpp"
#include "agent/ground/reply.hpp"
#include "agent/pty/client.hpp"
#include "http/websocket.hpp"

#include <charconv>

namespace opensandbox::agent {
namespace {

/// The body is optional.
Awaitable<Result<PtyShell>> read_shell(Services& services, http::Exchange& exchange) {
    Result<std::string> text = co_await http::read_all(exchange.body(), kMaxJsonBody);
    if (!text) co_return text.error();
    PtyShell shell;
    if (text->find_first_not_of(" \t\r\n") == std::string::npos) co_return shell;
    Result<json::value> body = json::parse(*text);
    if (!body) co_return body.error();
    if (!body->is_object()) {
        co_return Error(ErrorCode::invalid_argument, "the request body must be a JSON object");
    }
    json::object members = with_lower_names(body->get_object());
    auto directory = json::get_string(members, "cwd");
    if (!directory) co_return directory.error();
    auto command = json::get_string(members, "command");
    if (!command) co_return command.error();
    shell.command = command->value_or("");
    std::string wanted = directory->value_or("");
    if ((shell.command + wanted).find('\0') != std::string::npos) {
        co_return Error(ErrorCode::invalid_argument, "cwd and command must not hold NUL");
    }
    if (wanted.empty()) co_return shell;
    Result<std::string> expanded = expand_directory(wanted, services.environment);
    if (!expanded) co_return expanded.error().within("cwd");
    shell.directory = std::move(*expanded);
    co_return shell;
}

/// As the user that the shell will be.
Awaitable<Status> make_pty_directory(Services& services, std::string path) {
    std::function<Status()> work = [path = std::move(path)] { return make_directories(path); };
    co_return co_await services.files.run(identity_of(services.processes.user), std::move(work));
}

Awaitable<void> create_pty(Services& services, http::Exchange& exchange) {
    Result<PtyShell> shell = co_await read_shell(services, exchange);
    if (!shell) {
        co_await reply_error(exchange, shell.error());
        co_return;
    }
    if (!shell->directory.empty()) {
        Status made = co_await make_pty_directory(services, shell->directory);
        if (!made) {
            co_await reply_error(exchange, 500, code::kRuntimeError,
                                 made.error().within("cwd").message());
            co_return;
        }
    }
    auto session = services.terminals.create(std::move(*shell));
    if (!session) {
        co_await reply_error(exchange, 500, code::kRuntimeError, session.error().message());
        co_return;
    }
    co_await reply_json(exchange, 201, R"({"session_id":")" + (*session)->id() + "\"}");
}

Awaitable<std::shared_ptr<PtySession>> find_pty(Services& services, http::Exchange& exchange) {
    std::string id(exchange.parameter("id"));
    auto session = services.terminals.find(id);
    if (!session) {
        co_await reply_error(exchange, 404, code::kContextNotFound, "no such PTY session: " + id);
    }
    co_return session;
}

Awaitable<void> describe_pty(Services& services, http::Exchange& exchange) {
    auto session = co_await find_pty(services, exchange);
    if (!session) co_return;
    json::object body{{"session_id", session->id()},
                      {"running", session->running()},
                      {"output_offset", session->output().total()},
                      {"launch_attempted", session->launch_attempted()},
                      {"launch_failed", session->launch_failed()}};
    co_await reply_json(exchange, 200, json::serialize(json::value(std::move(body))));
}

Awaitable<void> remove_pty(Services& services, http::Exchange& exchange) {
    auto session = co_await find_pty(services, exchange);
    if (!session) co_return;
    services.terminals.remove(session->id());
    co_await reply_empty(exchange);
}

/// Anything unreadable counts as not given, but for what would give a viewer more than it asked
/// for.
Result<PtyClientOptions> client_options(http::Exchange& exchange) {
    http::Query query(exchange.request().query());
    PtyClientOptions options;
    std::string_view role = query.get("mode").value_or("holder");
    if (role != "holder" && role != "viewer") {
        return Error(ErrorCode::invalid_argument, "mode: must be holder or viewer");
    }
    options.viewer = role == "viewer";
    if (query.get("pty") == std::string_view("0")) options.mode = PtyProcess::Mode::pipes;
    options.takeover = query.get("takeover") == std::string_view("1");
    options.streams = query.get("streams") == std::string_view("1");
    std::string_view text = query.get("since").value_or("");
    std::uint64_t since = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), since);
    if (error == std::errc() && end == text.data() + text.size()) options.since = since;
    return options;
}

/// Gives the session back when the client is gone in whatever way.
class Visit {
  public:
    Visit(std::shared_ptr<PtySession> session, std::shared_ptr<PtyClient> client)
        : session_(std::move(session)), client_(std::move(client)) {}
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;
    ~Visit() { session_->leave(*client_); }

  private:
    std::shared_ptr<PtySession> session_;
    std::shared_ptr<PtyClient> client_;
};

Awaitable<void> connect_to_pty(Services& services, http::Exchange& exchange) {
    auto session = co_await find_pty(services, exchange);
    if (!session) co_return;
    if (!http::is_websocket_upgrade(exchange.request())) {
        co_await reply_error(exchange, 400, code::kInvalidBody,
                             "a PTY session is connected to by a WebSocket upgrade");
        co_return;
    }
    auto options = client_options(exchange);
    if (!options) {
        co_await reply_error(exchange, options.error());
        co_return;
    }
    auto client = std::make_shared<PtyClient>(services.executor, session, *options);
    Visit visit(session, client);
    if (options->viewer) {
        if (!session->watch(client)) {
            bool runs = session->running();
            co_await reply_error(exchange, runs ? 429 : 409,
                                 runs ? pty::kTooManyViewers : pty::kNotRunning,
                                 runs ? "the session has as many viewers as it may have"
                                      : "nothing runs in the session that could be viewed");
            co_return;
        }
    } else if (!options->takeover && !session->take(client)) {
        co_await reply_error(exchange, 409, pty::kAlreadyConnected,
                             "another client is connected to the session");
        co_return;
    }
    auto socket = co_await http::accept_websocket(exchange, PtyClient::kMaxFrame);
    if (socket) co_await PtyClient::run(client, std::move(*socket));
}

}  // namespace

void add_pty_routes(http::Router& router, Services& services) {
    auto bind = [&services](Awaitable<void> (*handler)(Services&, http::Exchange&)) {
        return
            [&services, handler](http::Exchange& exchange) { return handler(services, exchange); };
    };
    router.add("POST", "/pty", bind(create_pty));
    router.add("GET", "/pty/{id}", bind(describe_pty));
    router.add("DELETE", "/pty/{id}", bind(remove_pty));
    router.add("GET", "/pty/{id}/ws", bind(connect_to_pty));
}

}  // namespace opensandbox::agent
