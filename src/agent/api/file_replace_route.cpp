#include "agent/api/file_routes.hpp"
#include "agent/api/file_stop.hpp"
#include "agent/files/operations.hpp"
#include "agent/ground/reply.hpp"
#include "base/json_string.hpp"

#include <sys/stat.h>

#include <cerrno>

namespace opensandbox::agent {
namespace {

struct Replacement {
    std::string requested;
    std::string path;
    std::string old_text;
    std::string new_text;
};

Result<std::vector<Replacement>> parse_replacements(const FileCall& call, const json::value& body) {
    if (!body.is_object()) return invalid("the request body must be an object of paths");
    std::vector<Replacement> out;
    for (const auto& [requested, value] : body.get_object()) {
        if (!value.is_object()) return invalid(std::string(requested) + ": must be an object");
        json::object members = with_lower_names(value.get_object());
        auto old_text = json::get_string(members, "old");
        if (!old_text) return old_text.error().within(std::string(requested));
        auto new_text = json::get_string(members, "new");
        if (!new_text) return new_text.error().within(std::string(requested));
        if (old_text->value_or("").empty()) {
            return invalid(std::string(requested) + ": old must not be empty");
        }
        Result<std::string> path = call.resolve(requested);
        if (!path) return path.error();
        Replacement item;
        item.requested = requested;
        item.path = std::move(*path);
        item.old_text = std::move(**old_text);
        item.new_text = new_text->value_or("");
        out.push_back(std::move(item));
    }
    return out;
}

/// All files are looked at before the first is changed.
Result<std::string> replace_all(const std::vector<Replacement>& items,
                                const std::stop_token& stop) {
    for (const Replacement& item : items) {
        struct stat info{};
        if (::stat(item.path.c_str(), &info) != 0) return Error::from_errno(errno, item.path);
        if (!S_ISREG(info.st_mode)) return invalid(item.path + " is not a regular file");
    }
    std::string out = "{";
    for (const Replacement& item : items) {
        Result<std::uint64_t> count =
            replace_in_file(item.path, item.old_text, item.new_text, stop);
        if (!count) return count.error();
        if (out.size() > 1) out += ',';
        append_json_string(out, item.requested);
        out += ":{\"replacedCount\":";
        append_integer(out, static_cast<std::int64_t>(*count));
        out += '}';
    }
    return out + "}";
}

}  // namespace

Awaitable<void> replace_in_files(FileCall call) {
    http::Query query(call.exchange.request().query());
    bool verbose = query.get("verbose") == "true" || query.get("verbose") == "1";
    Result<json::value> body = co_await read_json(call.exchange);
    Result<std::vector<Replacement>> items =
        body ? parse_replacements(call, *body) : Result<std::vector<Replacement>>(body.error());
    if (!items) {
        co_await reply_error(call.exchange, items.error());
        co_return;
    }
    FileStop stop(call);
    std::function<Result<std::string>()> work = [list = std::move(*items), token = stop.token()] {
        return replace_all(list, token);
    };
    Result<std::string> counts = co_await call.services.files.run(call.identity, std::move(work));
    if (!counts) {
        co_await reply_error(call.exchange, counts.error());
    } else if (verbose) {
        co_await reply_json(call.exchange, 200, std::move(*counts));
    } else {
        co_await reply_empty(call.exchange);
    }
}

}  // namespace opensandbox::agent
