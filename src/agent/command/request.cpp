#include "agent/command/request.hpp"

#include "agent/ground/reply.hpp"
#include "agent/process/environment_file.hpp"

#include <sys/stat.h>

#include <limits>

namespace opensandbox::agent {
namespace {

Result<std::optional<std::uint32_t>> get_id(const json::object& body, std::string_view name) {
    Result<std::optional<std::int64_t>> number = json::get_integer(body, name);
    if (!number) return number.error();
    if (!*number) return std::optional<std::uint32_t>();
    // The last value means "unchanged" to the kernel and names nobody.
    if (**number < 0 || **number >= std::numeric_limits<std::uint32_t>::max()) {
        return invalid(std::string(name) + ": must be from 0 to 4294967294");
    }
    return std::optional<std::uint32_t>(static_cast<std::uint32_t>(**number));
}

Status take_program(const json::object& body, CommandRequest& request) {
    auto command = json::get_string(body, "command");
    if (!command) return command.error();
    auto argv = json::get_strings(body, "argv");
    if (!argv) return argv.error();
    bool shell = *command && !(*command)->empty();
    bool direct = argv->has_value();
    if (shell == direct) return invalid("exactly one of command and argv is required");
    if (shell) {
        request.command = std::move(**command);
        if (request.command.find('\0') != std::string::npos) {
            return invalid("command: must not hold NUL");
        }
        return {};
    }
    request.argv = std::move(**argv);
    if (request.argv.empty() || request.argv.front().empty()) {
        return invalid("argv: needs at least one item, and the first must not be empty");
    }
    for (const std::string& item : request.argv) {
        if (item.find('\0') != std::string::npos) return invalid("argv: must not hold NUL");
    }
    return {};
}

Status take_limits(const json::object& body, CommandRequest& request) {
    auto background = json::get_bool(body, "background");
    if (!background) return background.error();
    request.background = background->value_or(false);
    auto timeout = json::get_integer(body, "timeout");
    if (!timeout) return timeout.error();
    if (timeout->value_or(0) < 0) return invalid("timeout: must not be negative (milliseconds)");
    // A timer counts nanoseconds: longer than a century is for ever.
    constexpr std::int64_t kCentury = std::int64_t{100} * 365 * 86'400'000;
    request.timeout = std::chrono::milliseconds(std::min(timeout->value_or(0), kCentury));
    return {};
}

Status take_surroundings(const json::object& body, CommandRequest& request) {
    auto cwd = json::get_string(body, "cwd");
    if (!cwd) return cwd.error();
    request.cwd = cwd->value_or("");
    if (request.cwd.find('\0') != std::string::npos) return invalid("cwd: must not hold NUL");
    if (Status taken = take_user_ids(body, request.uid, request.gid); !taken) return taken;
    auto envs = json::get_string_map(body, "envs");
    if (!envs) return envs.error();
    if (*envs) request.envs = std::move(**envs);
    return check_environment(request.envs);
}

Result<std::string> resolve_directory(const CommandRequest& request,
                                      const Environment& environment) {
    Result<std::string> directory = expand_directory(request.cwd, environment);
    if (!directory) return directory;
    struct stat info{};
    if (::stat(directory->c_str(), &info) != 0) {
        return invalid("cwd: " + *directory + " does not exist");
    }
    if (!S_ISDIR(info.st_mode)) return invalid("cwd: " + *directory + " is not a directory");
    return directory;
}

}  // namespace

std::string CommandRequest::content() const {
    if (argv.empty()) return command;
    std::string out;
    for (const std::string& item : argv)
        out += (out.empty() ? "" : " ") + item;
    return out;
}

Status take_user_ids(const json::object& body, std::optional<std::uint32_t>& uid,
                     std::optional<std::uint32_t>& gid) {
    auto user = get_id(body, "uid");
    if (!user) return user.error();
    auto group = get_id(body, "gid");
    if (!group) return group.error();
    if (*group && !*user) return invalid("gid: needs uid");
    uid = *user;
    gid = *group;
    return {};
}

Result<CommandRequest> parse_command_request(const json::value& body) {
    if (!body.is_object()) return invalid("the request body must be a JSON object");
    json::object members = with_lower_names(body.get_object());
    CommandRequest request;
    if (Status done = take_program(members, request); !done) return done.error();
    if (Status done = take_limits(members, request); !done) return done.error();
    if (Status done = take_surroundings(members, request); !done) return done.error();
    return request;
}

Result<SpawnRequest> prepare_command(const ProcessContext& context, const CommandRequest& request) {
    Environment environment = context.environment;
    environment.merge(read_environment_file(context.environment));
    environment.merge(request.envs);
    SpawnRequest out;
    if (!request.cwd.empty()) {
        Result<std::string> directory = resolve_directory(request, environment);
        if (!directory) return directory.error();
        out.directory = std::move(*directory);
    }
    auto path = environment.get("PATH");
    if (request.argv.empty()) {
        out.programs = shell_programs(request.command, path);
    } else {
        out.programs.push_back(program_of(request.argv, path));
    }
    if (request.uid) {
        out.credentials = credentials_for(*request.uid, request.gid);
    } else {
        out.credentials = context.user.credentials();
    }
    out.environment = environment.entries();
    return out;
}

}  // namespace opensandbox::agent
