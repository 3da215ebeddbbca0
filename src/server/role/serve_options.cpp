#include "server/role/serve_options.hpp"

#include <array>
#include <charconv>
#include <functional>

namespace opensandbox::server {
namespace {

using Setter = Status (*)(ServeOptions&, const std::string&);

Error bad_value(std::string_view flag, std::string_view value, std::string_view rule) {
    return {ErrorCode::invalid_argument,
            std::string(flag) + ": '" + std::string(value) + "' must be " + std::string(rule)};
}

Status set_port(ServeOptions& options, const std::string& value) {
    std::uint16_t port = 0;
    const char* end = value.data() + value.size();
    auto [stop, problem] = std::from_chars(value.data(), end, port);
    if (problem != std::errc() || stop != end) {
        return bad_value("--port", value, "a number from 0 to 65535");
    }
    options.port = port;
    return {};
}

Status set_state_dir(ServeOptions& options, const std::string& value) {
    if (value.empty()) return bad_value("--state-dir", value, "a path");
    std::error_code ec;
    auto absolute = std::filesystem::absolute(value, ec);
    if (ec) return bad_value("--state-dir", value, "a path");
    options.state_dir = absolute.string();
    return {};
}

Status set_log_format(ServeOptions& options, const std::string& value) {
    options.log_format = parse_log_format(value);
    if (!options.log_format) return bad_value("--log-format", value, "text or json");
    return {};
}

Status set_log_level(ServeOptions& options, const std::string& value) {
    options.log_level = parse_log_level(value);
    if (!options.log_level) return bad_value("--log-level", value, "debug, info, warning or error");
    return {};
}

struct Flag {
    std::string_view name;
    Setter set;
};

constexpr std::array kFlags{
    Flag{"--config",
         [](ServeOptions& o, const std::string& v) -> Status {
             o.config = v;
             return {};
         }},
    Flag{"--host",
         [](ServeOptions& o, const std::string& v) -> Status {
             o.host = v;
             return {};
         }},
    Flag{"--port", set_port},
    Flag{"--state-dir", set_state_dir},
    Flag{"--log-format", set_log_format},
    Flag{"--log-level", set_log_level},
};

}  // namespace

Result<ServeOptions> parse_serve_options(const std::vector<std::string>& arguments) {
    ServeOptions options;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::string& argument = arguments[i];
        if (argument == "--help" || argument == "-h") {
            options.help = true;
            continue;
        }
        auto equals = argument.find('=');
        std::string name = argument.substr(0, equals);
        const Flag* flag = nullptr;
        for (const Flag& known : kFlags) {
            if (known.name == name) flag = &known;
        }
        if (!flag) {
            return Error(ErrorCode::invalid_argument, "unknown argument '" + argument + "'");
        }
        std::string value;
        if (equals != std::string::npos) {
            value = argument.substr(equals + 1);
        } else if (i + 1 < arguments.size()) {
            value = arguments[++i];
        } else {
            return Error(ErrorCode::invalid_argument, name + ": needs a value");
        }
        if (auto set = flag->set(options, value); !set) return set.error();
    }
    return options;
}

void apply(const ServeOptions& options, Config& config) {
    if (options.host) config.host = *options.host == "localhost" ? "127.0.0.1" : *options.host;
    if (options.port) config.port = *options.port;
    if (options.state_dir) config.state_dir = *options.state_dir;
    if (options.log_format) config.log_format = *options.log_format;
    if (options.log_level) config.log_level = *options.log_level;
}

const char* serve_usage() {
    return "usage: opensandbox serve [flags]\n"
           "The lifecycle server: creates, runs and removes sandboxes over HTTP.\n"
           "  --config FILE        configuration (default: $SANDBOX_CONFIG_PATH, then "
           "~/.sandbox.toml)\n"
           "  --host ADDRESS       where to listen (127.0.0.1)\n"
           "  --port PORT          0 lets the kernel choose (8080)\n"
           "  --state-dir DIR      everything that is kept (/var/lib/opensandbox, else "
           "~/.opensandbox)\n"
           "  --log-format FORMAT  text or json (text)\n"
           "  --log-level LEVEL    debug, info, warning or error (info)\n"
           "When it is ready it prints `listening on http://HOST:PORT` on standard output.\n"
           "Exit codes: 0 after SIGTERM or SIGINT, 1 when it cannot start, 2 for wrong usage.\n";
}

}  // namespace opensandbox::server
