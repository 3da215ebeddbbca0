#include "agent/api/routes.hpp"
#include "agent/ground/reply.hpp"
#include "agent/isolated/change_report.hpp"
#include "agent/isolated/overlay_commit.hpp"

namespace opensandbox::agent {
namespace {

Awaitable<void> send_difference(Services& services, std::shared_ptr<IsolatedSession> session,
                                http::Exchange& exchange, std::string path) {
    using Found = std::shared_ptr<PathDifference>;
    std::function<Result<Found>()> work = [session, path]() -> Result<Found> {
        Result<PathDifference> found = difference_of(*session, path);
        if (!found) return found.error();
        return std::make_shared<PathDifference>(std::move(*found));
    };
    Result<Found> found = co_await services.files.run(std::nullopt, std::move(work));
    if (!found) {
        co_await reply_error(exchange, found.error());
        co_return;
    }
    const char* type = (*found)->text ? "text/x-diff; charset=utf-8" : "application/octet-stream";
    co_await exchange.respond(http::Response(200, type, std::move((*found)->body)));
}

Awaitable<bool> can_change(std::shared_ptr<IsolatedSession> session, http::Exchange& exchange) {
    if (session->state() != IsolatedSession::State::active) {
        co_await reply_error(exchange, 404, code::kContextNotFound,
                             "session " + session->id() + " has ended");
        co_return false;
    }
    if (session->overlays().empty()) {
        co_await reply_error(exchange, 400, code::kInvalidBody,
                             "the session has no persistent overlay");
        co_return false;
    }
    co_return true;
}

Awaitable<void> diff(Services& services, std::shared_ptr<IsolatedSession> session,
                     http::Exchange& exchange) {
    bool possible = co_await can_change(session, exchange);
    if (!possible) co_return;
    session->touch(false);
    // Not while a commit exchanges the overlays.
    IsolatedSession::Turn turn = co_await IsolatedSession::take_turn(session);
    http::Query query(exchange.request().query());
    if (auto path = query.get("path"); path && !path->empty()) {
        co_await send_difference(services, session, exchange, std::string(*path));
        co_return;
    }
    std::function<Result<std::string>()> work = [session] { return describe_changes(*session); };
    Result<std::string> changes = co_await services.files.run(std::nullopt, std::move(work));
    if (changes) {
        co_await reply_json(exchange, 200,
                            R"({"session_id":")" + session->id() + "\"," + *changes + "}");
    } else {
        co_await reply_error(exchange, 500, code::kRuntimeError, changes.error().message());
    }
}

struct CommitRequest {
    std::vector<std::string> paths;  ///< empty: everything
    bool force = false;
};

/// An empty body commits everything.
Result<CommitRequest> parse_commit(const std::string& text, const IsolatedSession& session) {
    CommitRequest request;
    if (text.find_first_not_of(" \t\r\n") == std::string::npos) return request;
    Result<json::value> body = json::parse(text);
    if (!body) return body.error();
    if (!body->is_object()) {
        return Error(ErrorCode::invalid_argument, "the request body must be a JSON object");
    }
    json::object members = with_lower_names(body->get_object());
    auto paths = json::get_strings(members, "paths");
    if (!paths) return paths.error();
    if (*paths) request.paths = std::move(**paths);
    for (const std::string& path : request.paths) {
        auto place = is_clean_path(path) ? session.place_of(path) : std::nullopt;
        if (!place) {
            return Error(ErrorCode::invalid_argument,
                         "paths: " + path + " is outside of the session's overlays");
        }
    }
    auto force = json::get_bool(members, "force");
    if (!force) return force.error();
    request.force = force->value_or(false);
    return request;
}

/// The selected paths that lie in this overlay, relative to it; empty optional when none does.
std::optional<Selection> selection_in(const SessionOverlay& overlay, const CommitRequest& request) {
    Selection selection;
    if (request.paths.empty()) return selection;
    for (const std::string& path : request.paths) {
        if (!is_within(path, overlay.path)) continue;
        selection.push_back(path == overlay.path ? std::string()
                                                 : path.substr(overlay.path.size() + 1));
    }
    if (selection.empty()) return std::nullopt;
    return selection;
}

/// Answers with what is still uncommitted.
Result<std::string> commit_all(IsolatedSession& session, const CommitRequest& request) {
    for (SessionOverlay& overlay : session.overlays()) {
        auto selection = selection_in(overlay, request);
        if (!selection) continue;
        Status done = commit_overlay(overlay, session.namespaces(),
                                     session.places_below(overlay.path), *selection, request.force);
        if (!done) return done.error();
    }
    return describe_changes(session);
}

Awaitable<void> commit(Services& services, std::shared_ptr<IsolatedSession> session,
                       http::Exchange& exchange) {
    Result<std::string> text = co_await http::read_all(exchange.body(), kMaxJsonBody);
    Result<CommitRequest> request =
        text ? parse_commit(*text, *session) : Result<CommitRequest>(text.error());
    if (!request) {
        co_await reply_error(exchange, request.error());
        co_return;
    }
    bool possible = co_await can_change(session, exchange);
    if (!possible) co_return;
    session->touch(false);
    IsolatedSession::Turn turn = co_await IsolatedSession::take_turn(session);
    if (session->has_running_background()) {
        co_await reply_error(exchange, 409, code::kRuntimeError,
                             "background runs of the session are still running");
        co_return;
    }
    std::function<Result<std::string>()> work = [session, wanted = *request] {
        return commit_all(*session, wanted);
    };
    session->committing = true;
    Result<std::string> left = co_await services.files.run(std::nullopt, std::move(work));
    session->committing = false;
    if (left) {
        co_await reply_json(exchange, 200,
                            R"({"session_id":")" + session->id() + "\"," + *left + "}");
    } else {
        int status = left.error().code() == ErrorCode::conflict ? 409 : 500;
        co_await reply_error(exchange, status, code::kRuntimeError, left.error().message());
    }
}

}  // namespace

void add_change_routes(http::Router& router, Services& services) {
    using Handler =
        Awaitable<void> (*)(Services&, std::shared_ptr<IsolatedSession>, http::Exchange&);
    auto with_session = [&services](Handler handler) {
        return [&services, handler](http::Exchange& exchange) -> Awaitable<void> {
            auto session = co_await session_of(services, exchange);
            if (session) co_await handler(services, session, exchange);
        };
    };
    add_isolated_route(router, services, "GET", "/v1/isolated/session/{id}/diff",
                       with_session(diff));
    add_isolated_route(router, services, "POST", "/v1/isolated/session/{id}/commit",
                       with_session(commit));
}

}  // namespace opensandbox::agent
