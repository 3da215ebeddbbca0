#include "agent/api/line_form.hpp"
#include "agent/api/routes.hpp"
#include "agent/files/paths.hpp"
#include "agent/files/replacement_file.hpp"
#include "agent/ground/reply.hpp"
#include "agent/process/environment_file.hpp"
#include "agent/session/request.hpp"

namespace opensandbox::agent {
namespace {

/// The environment in which directories of requests are understood.
Environment environment_of(const Services& services) {
    Environment environment = services.environment;
    environment.merge(read_environment_file(services.environment));
    return environment;
}

/// The body, which may be empty.
Awaitable<Result<json::value>> read_optional_json(http::Exchange& exchange) {
    Result<std::string> text = co_await http::read_all(exchange.body(), kMaxJsonBody);
    if (!text) co_return text.error();
    if (text->find_first_not_of(" \t\r\n") == std::string::npos) {
        co_return json::value(json::object());
    }
    co_return json::parse(*text);
}

/// Where a new session begins: the requested directory, made when it is missing.
Awaitable<Result<std::string>> session_directory(Services& services, std::string requested) {
    if (requested.empty()) co_return resolve_path(".", services.environment);
    Environment environment = environment_of(services);
    Result<std::string> expanded = expand_directory(requested, environment);
    if (!expanded) co_return expanded.error();
    Result<std::string> path = resolve_path(*expanded, environment);
    if (!path) co_return path.error();
    // As the user who will work there.
    Identity user(services.processes.user.uid, services.processes.user.gid);
    std::function<Status()> work = [directory = *path] { return make_directories(directory); };
    Status made = co_await services.files.run<void>(user, std::move(work));
    if (!made) co_return made.error().as(std::string(code::kRuntimeError));
    co_return path;
}

Awaitable<void> create_session(Services& services, http::Exchange& exchange) {
    Result<json::value> body = co_await read_optional_json(exchange);
    Result<std::string> cwd =
        body ? parse_session_request(*body) : Result<std::string>(body.error());
    if (!cwd) {
        co_await reply_error(exchange, cwd.error());
        co_return;
    }
    Result<std::string> directory = co_await session_directory(services, std::move(*cwd));
    if (!directory) {
        bool wrong = directory.error().code() == ErrorCode::invalid_argument;
        co_await reply_error(exchange, wrong ? 400 : 500,
                             wrong ? code::kInvalidBody : code::kRuntimeError,
                             directory.error().message());
        co_return;
    }
    auto session = services.sessions.create(std::move(*directory));
    if (!session) {
        co_await reply_error(exchange, session.error());
        co_return;
    }
    std::string reply = R"({"session_id":")" + (*session)->id() + "\"}";
    co_await reply_json(exchange, 200, std::move(reply));
}

Awaitable<void> reply_unknown(http::Exchange& exchange) {
    std::string id(exchange.parameter("id"));
    co_await reply_error(exchange, 404, code::kContextNotFound, "no such session: " + id);
}

/// Ends the run when its reader leaves (execd contract 4).
Awaitable<void> abandon_when_gone(Awaitable<void> gone, std::weak_ptr<Session> session,
                                  std::weak_ptr<SessionRun> run) {
    co_await std::move(gone);
    auto owner = session.lock();
    auto left = run.lock();
    // The stream may have come to its end instead.
    if (owner && left && !left->pump()->ended()) owner->abandon(left);
}

Awaitable<void> run_in_session(Services& services, http::Exchange& exchange) {
    Result<json::value> body = co_await read_json(exchange);
    auto session = services.sessions.find(std::string(exchange.parameter("id")));
    if (!session) {
        co_await reply_unknown(exchange);
        co_return;
    }
    Result<SessionRequest> request = body ? parse_session_run(*body, environment_of(services))
                                          : Result<SessionRequest>(body.error());
    if (!request) {
        co_await reply_error(exchange, request.error());
        co_return;
    }
    auto run = session->add(std::move(*request), line_form_for(services, exchange));
    if (!run) {
        co_await reply_error(exchange, run.error());
        co_return;
    }
    const std::shared_ptr<SessionRun>& mine = *run;
    net::spawn(services.executor, abandon_when_gone(exchange.client_gone(), session, mine),
               "session client watch");
    bool complete = co_await EventPump::stream(mine->pump(), exchange);
    if (complete) {
        mine->release_outputs();
    } else {
        session->abandon(mine);
    }
}

Awaitable<void> delete_session(Services& services, http::Exchange& exchange) {
    if (services.sessions.erase(std::string(exchange.parameter("id")))) {
        co_await reply_empty(exchange);
    } else {
        co_await reply_unknown(exchange);
    }
}

}  // namespace

void add_session_routes(http::Router& router, Services& services) {
    auto bind = [&services](Awaitable<void> (*handler)(Services&, http::Exchange&)) {
        return
            [&services, handler](http::Exchange& exchange) { return handler(services, exchange); };
    };
    router.add("POST", "/session", bind(create_session));
    router.add("POST", "/session/{id}/run", bind(run_in_session));
    router.add("DELETE", "/session/{id}", bind(delete_session));
}

}  // namespace opensandbox::agent
