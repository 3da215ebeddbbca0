#include "agent/api/file_routes.hpp"

#include "agent/api/routes.hpp"
#include "agent/files/file_info.hpp"
#include "agent/files/operations.hpp"
#include "agent/files/permission.hpp"
#include "agent/files/replacement_file.hpp"
#include "agent/ground/reply.hpp"
#include "base/json_string.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

using PathPermissions = std::vector<std::pair<std::string, Permission>>;

/// Runs blocking work without a result and answers with 200 or its error.
Awaitable<void> finish_with(FileCall call, std::function<Status()> work) {
    Status done = co_await call.services.files.run<void>(call.identity, std::move(work));
    if (done) {
        co_await reply_empty(call.exchange);
    } else {
        co_await reply_error(call.exchange, done.error());
    }
}

/// Absolute forms of all `path` parameters.
Result<std::vector<std::string>> resolved_paths(const FileCall& call) {
    std::vector<std::string> paths;
    for (const std::string& requested : call.path_parameters()) {
        Result<std::string> path = call.resolve(requested);
        if (!path) return path.error();
        paths.push_back(std::move(*path));
    }
    return paths;
}

Awaitable<void> file_info(FileCall call) {
    std::vector<std::pair<std::string, std::string>> wanted;
    for (const std::string& requested : call.path_parameters()) {
        Result<std::string> path = call.resolve(requested);
        if (!path) {
            co_await reply_error(call.exchange, path.error());
            co_return;
        }
        wanted.emplace_back(requested, std::move(*path));
    }
    std::function<Result<std::string>()> work = [wanted]() -> Result<std::string> {
        FileInfoWriter writer;
        std::string out = "{";
        for (const auto& [requested, path] : wanted) {
            if (out.size() > 1) out += ',';
            append_json_string(out, requested);
            out += ':';
            if (Status put = writer.append(out, path); !put) return put.error();
        }
        return out + "}";
    };
    Result<std::string> body = co_await call.services.files.run(call.identity, std::move(work));
    if (body) {
        co_await reply_json(call.exchange, 200, std::move(*body));
    } else {
        co_await reply_error(call.exchange, body.error());
    }
}

Status delete_file(const std::string& path) {
    struct stat info{};
    // A link to a directory counts as one (execd contract 6.3); one to nowhere is just removed.
    if (::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
        return Error(ErrorCode::conflict, path + " is a directory");
    }
    if (::unlink(path.c_str()) != 0 && errno != ENOENT && errno != ENOTDIR) {
        return Error::from_errno(errno, "delete " + path);
    }
    return {};
}

Status delete_directory(const std::string& path) {
    if (path == "/") return invalid("path: the root directory cannot be deleted");
    std::error_code failure;
    std::filesystem::remove_all(path, failure);
    if (failure) return Error::from_errno(failure.value(), "delete " + path);
    return {};
}

/// Deletes every `path` with one of the two functions above, until the first error.
Awaitable<void> delete_each(FileCall call, Status (*remove)(const std::string&)) {
    Result<std::vector<std::string>> paths = resolved_paths(call);
    if (!paths) {
        co_await reply_error(call.exchange, paths.error());
        co_return;
    }
    std::function<Status()> work = [paths = std::move(*paths), remove]() -> Status {
        for (const std::string& path : paths) {
            if (Status done = remove(path); !done) return done;
        }
        return {};
    };
    co_await finish_with(call, std::move(work));
}

Awaitable<void> delete_files(FileCall call) {
    co_await delete_each(call, delete_file);
}
Awaitable<void> delete_directories(FileCall call) {
    co_await delete_each(call, delete_directory);
}

/// A body of the shape {path: {owner, group, mode}}.
Result<PathPermissions> path_permissions(const FileCall& call, const json::value& body) {
    if (!body.is_object()) return invalid("the request body must be an object of paths");
    PathPermissions out;
    for (const auto& [requested, value] : body.get_object()) {
        json::object members;
        if (value.is_object()) members = with_lower_names(value.get_object());
        if (!value.is_object() && !value.is_null()) {
            return invalid(std::string(requested) + ": must be an object");
        }
        Result<std::string> path = call.resolve(requested);
        if (!path) return path.error();
        Result<Permission> permission = parse_permission(members);
        if (!permission) return permission.error().within(std::string(requested));
        out.emplace_back(std::move(*path), std::move(*permission));
    }
    return out;
}

/// Does something to every path of such a body, until the first error.
Awaitable<void> permissions_each(FileCall call,
                                 Status (*apply)(const std::string&, const Permission&)) {
    Result<json::value> body = co_await read_json(call.exchange);
    Result<PathPermissions> items =
        body ? path_permissions(call, *body) : Result<PathPermissions>(body.error());
    if (!items) {
        co_await reply_error(call.exchange, items.error());
        co_return;
    }
    std::function<Status()> work = [items = std::move(*items), apply]() -> Status {
        for (const auto& [path, permission] : items) {
            if (Status done = apply(path, permission); !done) return done;
        }
        return {};
    };
    co_await finish_with(call, std::move(work));
}

/// A missing file here is a failure of the operation (execd contract 6.3).
Status set_permissions(const std::string& path, const Permission& permission) {
    struct stat info{};
    if (::stat(path.c_str(), &info) != 0) {
        return Error(ErrorCode::io, Error::from_errno(errno, path).message());
    }
    Status done = apply_permission(path, permission);
    if (done) return done;
    return Error(ErrorCode::io, done.error().message());
}

Status make_directory(const std::string& path, const Permission& permission) {
    struct stat info{};
    bool existed = ::stat(path.c_str(), &info) == 0;
    if (Status made = make_directories(path); !made) return made;
    return existed ? Status() : apply_permission(path, permission);
}

Awaitable<void> change_permissions(FileCall call) {
    co_await permissions_each(call, set_permissions);
}
Awaitable<void> create_directories(FileCall call) {
    co_await permissions_each(call, make_directory);
}

using Moves = std::vector<std::pair<std::string, std::string>>;

Result<Moves> parse_moves(const FileCall& call, const json::value& body) {
    if (!body.is_array()) return invalid("the request body must be an array of {src, dest}");
    Moves moves;
    for (const json::value& item : body.get_array()) {
        if (!item.is_object()) return invalid("every item must be an object with src and dest");
        json::object members = with_lower_names(item.get_object());
        auto source = json::get_string(members, "src");
        if (!source) return source.error();
        auto target = json::get_string(members, "dest");
        if (!target) return target.error();
        Result<std::string> from = call.resolve(source->value_or(""));
        if (!from) return from.error().within("src");
        Result<std::string> to = call.resolve(target->value_or(""));
        if (!to) return to.error().within("dest");
        moves.emplace_back(std::move(*from), std::move(*to));
    }
    return moves;
}

Awaitable<void> move_files(FileCall call) {
    Result<json::value> body = co_await read_json(call.exchange);
    Result<Moves> moves = body ? parse_moves(call, *body) : Result<Moves>(body.error());
    if (!moves) {
        co_await reply_error(call.exchange, moves.error());
        co_return;
    }
    std::function<Status()> work = [moves = std::move(*moves)]() -> Status {
        for (const auto& [from, to] : moves) {
            if (Status done = move_path(from, to); !done) return done;
        }
        return {};
    };
    co_await finish_with(call, std::move(work));
}

std::optional<std::uint32_t> to_id(std::string_view text) {
    std::uint32_t id = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
    if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
        return std::nullopt;
    }
    // The last id means "unchanged" to the kernel.
    return id == UINT32_MAX ? std::nullopt : std::optional<std::uint32_t>(id);
}

Awaitable<void> as_identity(Services& services, http::Exchange& exchange, FileHandler handler) {
    auto uid = to_id(exchange.parameter("uid"));
    auto gid = to_id(exchange.parameter("gid"));
    if (!uid || !gid) {
        co_await reply_error(exchange, 400, code::kInvalidBody,
                             "uid and gid must be from 0 to 4294967294");
        co_return;
    }
    co_await handler(FileCall(services, exchange, Identity(*uid, *gid)));
}

}  // namespace

Result<std::string> FileCall::path_parameter() const {
    http::Query query(exchange.request().query());
    auto requested = query.get("path");
    if (!requested || requested->empty()) {
        return Error(ErrorCode::invalid_argument, std::string(code::kMissingQuery),
                     "query parameter path is required");
    }
    return resolve(*requested);
}

std::vector<std::string> FileCall::path_parameters() const {
    http::Query query(exchange.request().query());
    std::vector<std::string> paths;
    for (std::string_view path : query.all("path"))
        paths.emplace_back(path);
    return paths;
}

std::span<const FileRoute> file_routes() {
    static constexpr FileRoute kRoutes[] = {
        {"GET", "/files/info", file_info, false},
        {"DELETE", "/files", delete_files, true},
        {"POST", "/files/permissions", change_permissions, true},
        {"POST", "/files/mv", move_files, true},
        {"GET", "/files/search", search_files, false},
        {"POST", "/files/replace", replace_in_files, true},
        {"POST", "/files/upload", upload_files, true},
        {"GET", "/files/download", download_file, false},
        {"GET", "/files/watch", watch_files, false, false},
        {"GET", "/files/archive", pack_files, false, false},
        {"POST", "/files/archive", unpack_files, true, false},
        {"GET", "/directories/list", list_directory, false},
        {"POST", "/directories", create_directories, true},
        {"DELETE", "/directories", delete_directories, true},
    };
    return kRoutes;
}

void add_file_routes(http::Router& router, Services& services) {
    for (const FileRoute& route : file_routes()) {
        router.add(route.method, route.pattern,
                   [&services, handler = route.handler](http::Exchange& exchange) {
                       return handler(FileCall(services, exchange, std::nullopt));
                   });
        std::string prefixed = "/v1/filesystem/{uid}/{gid}" + std::string(route.pattern);
        router.add(route.method, prefixed,
                   [&services, handler = route.handler](http::Exchange& exchange) {
                       return as_identity(services, exchange, handler);
                   });
    }
}

}  // namespace opensandbox::agent
