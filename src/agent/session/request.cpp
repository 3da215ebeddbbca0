#include "agent/session/request.hpp"

#include "agent/files/paths.hpp"
#include "agent/ground/reply.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace opensandbox::agent {
namespace {

constexpr std::chrono::milliseconds kLongestRun = std::chrono::hours(24);

Result<json::object> members_of(const json::value& body) {
    if (!body.is_object()) return invalid("the request body must be a JSON object");
    return with_lower_names(body.get_object());
}

Result<std::string> text_member(const json::object& members, std::string_view name) {
    auto text = json::get_string(members, name);
    if (!text) return text.error();
    if (text->value_or("").find('\0') != std::string::npos) {
        return invalid(std::string(name) + ": must not hold NUL");
    }
    return text->value_or("");
}

Result<std::string> existing_directory(const std::string& requested,
                                       const Environment& environment) {
    Result<std::string> expanded = expand_directory(requested, environment);
    if (!expanded) return expanded;
    Result<std::string> path = resolve_path(*expanded, environment);
    if (!path) return path;
    struct Free {
        void operator()(char* text) const { std::free(text); }
    };
    std::unique_ptr<char, Free> real(::realpath(path->c_str(), nullptr));
    struct stat info{};
    if (!real || ::stat(real.get(), &info) != 0)
        return invalid("cwd: " + *path + " does not exist");
    if (!S_ISDIR(info.st_mode)) return invalid("cwd: " + *path + " is not a directory");
    return std::string(real.get());
}

}  // namespace

Result<std::string> parse_session_request(const json::value& body) {
    Result<json::object> members = members_of(body);
    if (!members) return members.error();
    return text_member(*members, "cwd");
}

Result<SessionRequest> parse_session_run(const json::value& body, const Environment& environment) {
    Result<json::object> members = members_of(body);
    if (!members) return members.error();
    SessionRequest request;
    Result<std::string> command = text_member(*members, "command");
    if (!command) return command.error();
    if (command->empty()) return invalid("command: must not be empty");
    request.text = std::move(*command);
    auto timeout = json::get_integer(*members, "timeout");
    if (!timeout) return timeout.error();
    std::int64_t limit = timeout->value_or(0);
    if (limit < 0) return invalid("timeout: must not be negative (milliseconds)");
    request.timeout = kLongestRun;
    if (limit > 0) request.timeout = std::min(std::chrono::milliseconds(limit), kLongestRun);
    Result<std::string> cwd = text_member(*members, "cwd");
    if (!cwd) return cwd.error();
    if (cwd->empty()) return request;
    Result<std::string> directory = existing_directory(*cwd, environment);
    if (!directory) return directory.error();
    request.directory = std::move(*directory);
    return request;
}

}  // namespace opensandbox::agent
