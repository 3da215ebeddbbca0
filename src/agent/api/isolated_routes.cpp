#include "agent/api/file_routes.hpp"
#include "agent/api/routes.hpp"
#include "agent/ground/reply.hpp"
#include "agent/isolated/capabilities.hpp"
#include "agent/isolated/run.hpp"
#include "base/identifier.hpp"

#include <charconv>
#include <filesystem>

namespace opensandbox::agent {
namespace {

using SessionHandler = Awaitable<void> (*)(Services&, std::shared_ptr<IsolatedSession>,
                                           http::Exchange&);

Awaitable<void> capabilities(Services& services, http::Exchange& exchange) {
    Isolation::Abilities able = co_await services.isolation.abilities();
    co_await reply_json(
        exchange, 200, capabilities_json(able, services.isolation.config(), services.options.init));
}

/// Whether there is isolation here; answers when not.
Awaitable<bool> offered(Services& services, http::Exchange& exchange) {
    Isolation::Abilities able = co_await services.isolation.abilities();
    if (!able.available) co_await reply_error(exchange, 503, code::kNotSupported, able.message);
    co_return able.available;
}

Awaitable<void> create_isolated_session(Services& services, http::Exchange& exchange) {
    bool possible = co_await offered(services, exchange);
    if (!possible) co_return;
    Result<json::value> body = co_await read_json(exchange);
    Result<IsolatedSessionRequest> request =
        body ? parse_isolated_session_request(*body) : Result<IsolatedSessionRequest>(body.error());
    if (!request) {
        co_await reply_error(exchange, request.error());
        co_return;
    }
    auto session = co_await services.isolation.create(std::move(*request));
    if (session) {
        co_await reply_json(exchange, 201, (*session)->created_json());
    } else {
        co_await reply_error(exchange, session.error());
    }
}

Awaitable<void> list_isolated_sessions(Services& services, http::Exchange& exchange) {
    bool possible = co_await offered(services, exchange);
    if (!possible) co_return;
    std::string out = R"({"sessions":[)";
    for (const auto& [id, session] : services.isolation.sessions()) {
        if (out.back() != '[') out += ',';
        out += session->state_json(true);
    }
    co_await reply_json(exchange, 200, out + "]}");
}

Awaitable<void> get_isolated_session(Services&, std::shared_ptr<IsolatedSession> session,
                                     http::Exchange& exchange) {
    co_await reply_json(exchange, 200, session->state_json(false));
}

Awaitable<void> delete_isolated_session(Services& services,
                                        std::shared_ptr<IsolatedSession> session,
                                        http::Exchange& exchange) {
    co_await services.isolation.destroy(session);
    co_await reply_empty(exchange);
}

Awaitable<void> run_in_isolated_session(Services& services,
                                        std::shared_ptr<IsolatedSession> session,
                                        http::Exchange& exchange) {
    Result<json::value> body = co_await read_json(exchange);
    Result<RunRequest> request = body ? parse_run_request(*body) : Result<RunRequest>(body.error());
    if (!request) {
        co_await reply_error(exchange, request.error());
        co_return;
    }
    if (!request->background) {
        co_await run_foreground(services.processes, services.isolation, session,
                                std::move(*request), exchange);
        co_return;
    }
    auto run = co_await start_background_run(services.processes, services.isolation, session,
                                             std::move(*request));
    if (!run) {
        co_await reply_error(exchange, run.error());
        co_return;
    }
    co_await reply_json(exchange, 202,
                        R"({"session_id":")" + session->id() + R"(","run_id":")" + (*run)->id +
                            R"(","started_at":")" + to_rfc3339((*run)->started_at) + "\"}");
}

Awaitable<std::shared_ptr<BackgroundRun>> run_of(std::shared_ptr<IsolatedSession> session,
                                                 http::Exchange& exchange) {
    std::string id(exchange.parameter("run"));
    auto run = session->find(id);
    if (!run) {
        co_await reply_error(exchange, 404, code::kContextNotFound,
                             "no such run in this session: " + id);
    }
    co_return run;
}

Awaitable<void> run_status(Services&, std::shared_ptr<IsolatedSession> session,
                           http::Exchange& exchange) {
    auto run = co_await run_of(session, exchange);
    if (run) co_await reply_json(exchange, 200, run->status_json(session->id()));
}

Awaitable<void> run_logs(Services& services, std::shared_ptr<IsolatedSession> session,
                         http::Exchange& exchange) {
    auto run = co_await run_of(session, exchange);
    if (!run) co_return;
    http::Query query(exchange.request().query());
    std::string_view text = query.get("cursor").value_or("0");
    std::uint64_t cursor = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), cursor);
    if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
        co_await reply_error(exchange, 400, code::kInvalidBody,
                             "cursor: must be an integer of 0 or more");
        co_return;
    }
    std::function<Result<OutputPage>()> read = [output = run->output, cursor,
                                                growing = !run->finished_at] {
        return output->read(cursor, kMaxRunOutput, growing);
    };
    Result<OutputPage> page = co_await services.files.run(std::nullopt, std::move(read));
    if (!page) {
        co_await reply_error(exchange, 500, code::kRuntimeError, page.error().message());
        co_return;
    }
    http::Response response(200, "text/plain; charset=utf-8", std::move(page->bytes));
    response.head.fields.set("EXECD-ISOLATED-TAIL-CURSOR", std::to_string(page->next));
    co_await exchange.respond(std::move(response));
}

/// Which paths of a session its file routes reach.
PathRule rule_for(const std::shared_ptr<IsolatedSession>& session, bool writes) {
    return [session, writes](const std::string& path) -> Result<std::string> {
        std::string clean = std::filesystem::path(path).lexically_normal().string();
        while (clean.size() > 1 && clean.ends_with('/'))
            clean.pop_back();
        auto place = session->place_of(clean);
        if (!place) {
            return Error(ErrorCode::invalid_argument,
                         "path: " + path + " is outside of the session's mounts");
        }
        if (writes && !place->writable) {
            return Error(ErrorCode::permission_denied, place->path + " cannot be written to");
        }
        return clean;
    };
}

Awaitable<void> in_session(Services& services, http::Exchange& exchange, FileHandler handler,
                           bool writes) {
    auto session = co_await session_of(services, exchange);
    if (!session) co_return;
    if (session->state() != IsolatedSession::State::active) {
        co_await reply_error(exchange, 404, code::kContextNotFound,
                             "session " + session->id() + " has ended");
        co_return;
    }
    session->touch(false);
    Identity inside(::geteuid(), ::getegid(), session->namespaces().mounts());
    co_await handler(FileCall(services, exchange, inside, rule_for(session, writes)));
}

}  // namespace

Awaitable<std::shared_ptr<IsolatedSession>> session_of(Services& services,
                                                       http::Exchange& exchange) {
    std::string id(exchange.parameter("id"));
    auto session = services.isolation.find(id);
    if (session) co_return session;
    bool possible = co_await offered(services, exchange);
    if (possible) {
        co_await reply_error(exchange, 404, code::kContextNotFound,
                             "no such isolated session: " + id);
    }
    co_return nullptr;
}

namespace {

/// Where this agent has a broker every route leads there.
Awaitable<void> pass_on(Services& services, http::Exchange& exchange) {
    BrokerSettings settings;
    settings.uid = services.options.uid;
    settings.gid = services.options.gid;
    settings.environment = services.environment.pairs();
    co_await services.broker.forward(exchange, std::move(settings));
}

}  // namespace

void add_isolated_route(http::Router& router, Services& services, std::string_view method,
                        std::string_view pattern, http::Handler handler) {
    if (services.broker.wanted()) {
        handler = [&services](http::Exchange& exchange) { return pass_on(services, exchange); };
    }
    router.add(method, pattern, std::move(handler));
}

void add_isolated_routes(http::Router& router, Services& services) {
    auto add = [&](std::string_view method, const std::string& pattern, http::Handler handler) {
        add_isolated_route(router, services, method, pattern, std::move(handler));
    };
    auto bind = [&services](Awaitable<void> (*handler)(Services&, http::Exchange&)) {
        return
            [&services, handler](http::Exchange& exchange) { return handler(services, exchange); };
    };
    add("GET", std::string(kCapabilitiesPath), bind(capabilities));
    add("POST", "/v1/isolated/session", bind(create_isolated_session));
    add("GET", "/v1/isolated/sessions", bind(list_isolated_sessions));
    const std::string prefix = "/v1/isolated/session/{id}";
    auto with_session = [&services](SessionHandler handler) {
        return [&services, handler](http::Exchange& exchange) -> Awaitable<void> {
            auto session = co_await session_of(services, exchange);
            if (session) co_await handler(services, session, exchange);
        };
    };
    add("GET", prefix, with_session(get_isolated_session));
    add("DELETE", prefix, with_session(delete_isolated_session));
    add("POST", prefix + "/run", with_session(run_in_isolated_session));
    add("GET", prefix + "/runs/{run}", with_session(run_status));
    add("GET", prefix + "/runs/{run}/logs", with_session(run_logs));
    add_change_routes(router, services);
    for (const FileRoute& route : file_routes()) {
        if (!route.in_sessions) continue;
        add(route.method, prefix + std::string(route.pattern),
            [&services, handler = route.handler, writes = route.writes](http::Exchange& exchange) {
                return in_session(services, exchange, handler, writes);
            });
    }
}

}  // namespace opensandbox::agent
