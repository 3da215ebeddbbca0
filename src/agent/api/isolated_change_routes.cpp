#include "agent/api/isolated_routes.hpp"
#include "agent/files/file_info.hpp"
#include "agent/ground/reply.hpp"
#include "agent/isolated/overlay_commit.hpp"
#include "agent/isolated/text_diff.hpp"
#include "base/json_string.hpp"

#include <linux/openat2.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

/// Changes in one answer, and the largest file whose text is compared.
constexpr std::size_t kMaxChanges = 50'000;
constexpr std::size_t kMaxChangeText = std::size_t{2} << 20;
constexpr std::size_t kMaxContent = std::size_t{16} << 20;

std::string_view kind_of(UpperChange::Kind kind) {
    switch (kind) {
        case UpperChange::Kind::added: return "added";
        case UpperChange::Kind::modified: return "modified";
        case UpperChange::Kind::deleted: break;
    }
    return "deleted";
}

std::string_view type_of(mode_t mode) {
    if (S_ISREG(mode)) return "file";
    if (S_ISDIR(mode)) return "directory";
    return S_ISLNK(mode) ? "symlink" : "other";
}

void append_change(std::string& out, const std::string& overlay, const UpperChange& change) {
    if (out.back() != '[') out += ',';
    out += "{\"path\":";
    append_json_string(out, overlay + "/" + change.path);
    out += ",\"kind\":\"";
    out += kind_of(change.kind);
    out += "\",\"type\":\"";
    out += type_of(change.info.st_mode);
    out += "\",\"size\":";
    append_integer(out, change.info.st_size);
    out += ",\"mode\":";
    append_integer(out, mode_to_wire(change.info.st_mode & 07777));
    out += '}';
}

/// The members `changes` and `truncated` for the overlays of a session.
Result<std::string> describe_changes(IsolatedSession& session) {
    std::string out = "\"changes\":[";
    std::size_t left = kMaxChanges;
    bool truncated = false;
    for (const SessionOverlay& overlay : session.overlays()) {
        Result<UniqueFd> upper = open_upper(overlay, session.namespaces());
        if (!upper) return upper.error();
        bool more = false;
        auto changes = list_changes(overlay.lower.get(), upper->get(), left, more);
        if (!changes) return changes.error();
        for (const UpperChange& change : *changes)
            append_change(out, overlay.path, change);
        left -= changes->size();
        truncated = truncated || more;
    }
    return out + (truncated ? "],\"truncated\":true" : "],\"truncated\":false");
}

/// What one changed path looks like before and after.
struct Difference {
    Difference() = default;
    std::string body;
    bool text = false;
};

/// A regular file below a directory, no link followed, at most `limit` bytes; empty when there is
/// none such.
Result<std::string> read_below(int directory, const std::string& path, std::size_t limit) {
    open_how how{};
    how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
    UniqueFd file(
        static_cast<int>(::syscall(SYS_openat2, directory, path.c_str(), &how, sizeof how)));
    struct stat info{};
    if (!file || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return std::string();
    if (static_cast<std::uint64_t>(info.st_size) > limit) {
        return Error(ErrorCode::too_large, path + " is larger than 16 MiB: download it");
    }
    std::string content(static_cast<std::size_t>(info.st_size), '\0');
    std::size_t have = 0;
    while (have < content.size()) {
        ssize_t got = ::read(file.get(), content.data() + have, content.size() - have);
        if (got < 0) return Error::from_errno(errno, "read " + path);
        if (got == 0) break;
        have += static_cast<std::size_t>(got);
    }
    content.resize(have);
    return content;
}

Result<Difference> difference_of(IsolatedSession& session, const std::string& path) {
    for (const SessionOverlay& overlay : session.overlays()) {
        if (!is_within(path, overlay.path) || path == overlay.path) continue;
        std::string inner = path.substr(overlay.path.size() + 1);
        Result<UniqueFd> upper = open_upper(overlay, session.namespaces());
        if (!upper) return upper.error();
        bool more = false;
        auto changes = list_changes(overlay.lower.get(), upper->get(), std::size_t{1} << 24, more);
        if (!changes) return changes.error();
        auto at = std::ranges::find(*changes, inner, &UpperChange::path);
        if (at == changes->end()) continue;
        bool added = at->kind == UpperChange::Kind::added;
        bool deleted = at->kind == UpperChange::Kind::deleted;
        Result<std::string> before =
            added ? std::string() : read_below(overlay.lower.get(), inner, kMaxContent);
        Result<std::string> after =
            deleted ? std::string() : read_below(upper->get(), inner, kMaxContent);
        if (!before) return before.error();
        if (!after) return after.error();
        Difference out;
        out.text = before->size() <= kMaxChangeText && after->size() <= kMaxChangeText &&
                   is_text(*before) && is_text(*after);
        if (out.text) {
            out.body = unified_diff(*before, *after, added ? "/dev/null" : "a" + path,
                                    deleted ? "/dev/null" : "b" + path);
        } else {
            out.body = std::move(*after);
        }
        return out;
    }
    return Error(ErrorCode::not_found, path + " is not changed");
}

Awaitable<void> send_difference(Services& services, std::shared_ptr<IsolatedSession> session,
                                http::Exchange& exchange, std::string path) {
    using Found = std::shared_ptr<Difference>;
    std::function<Result<Found>()> work = [session, path]() -> Result<Found> {
        Result<Difference> found = difference_of(*session, path);
        if (!found) return found.error();
        return std::make_shared<Difference>(std::move(*found));
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
    CommitRequest() = default;
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
