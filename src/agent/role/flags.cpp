#include "agent/role/flags.hpp"

#include "base/clock.hpp"
#include "telemetry/otlp_settings.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

namespace opensandbox::agent {
namespace {

enum class Kind : unsigned char { text, number, duration, boolean };

struct Flag {
    std::string_view name;
    std::string_view variable;  ///< environment variable of the same meaning; may be empty
    Kind kind;
};

constexpr Flag kFlags[] = {
    {"port", "", Kind::number},
    {"access-token", "EXECD_ACCESS_TOKEN", Kind::text},
    {"log-level", "", Kind::number},
    {"init", "EXECD_INIT", Kind::boolean},
    {"jupyter-host", "JUPYTER_HOST", Kind::text},
    {"jupyter-token", "JUPYTER_TOKEN", Kind::text},
    {"jupyter-idle-poll-interval", "EXECD_JUPYTER_IDLE_POLL_INTERVAL", Kind::duration},
    {"graceful-shutdown-timeout", "EXECD_API_GRACE_SHUTDOWN", Kind::duration},
    {"isolation-config", "EXECD_ISOLATION_CONFIG", Kind::text},
};

using Values = std::map<std::string, std::string, std::less<>>;

std::optional<bool> to_bool(std::string text) {
    for (char& c : text) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    if (text == "1" || text == "true" || text == "t" || text == "yes" || text == "on") return true;
    if (text == "0" || text == "false" || text == "f" || text == "no" || text == "off" ||
        text.empty()) {
        return false;
    }
    return std::nullopt;
}

std::optional<int> to_int(std::string_view text) {
    int number = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
        return std::nullopt;
    }
    return number;
}

Status check_value(const Flag& flag, const std::string& value, const std::string& where) {
    bool good = true;
    if (flag.kind == Kind::number) good = to_int(value).has_value();
    if (flag.kind == Kind::duration) good = parse_duration(value).has_value();
    if (flag.kind == Kind::boolean) good = to_bool(value).has_value();
    if (good) return {};
    return invalid("invalid value \"" + value + "\" for " + where);
}

Status read_environment(const std::vector<std::pair<std::string, std::string>>& env,
                        Values& values) {
    for (const auto& [name, value] : env) {
        auto flag = std::ranges::find_if(kFlags, [&](const Flag& known) {
            return !known.variable.empty() && known.variable == name;
        });
        if (flag == std::end(kFlags) || value.empty()) continue;
        if (Status checked = check_value(*flag, value, name); !checked) return checked;
        if (name == "JUPYTER_HOST" && !value.starts_with("http://") &&
            !value.starts_with("https://")) {
            return invalid("JUPYTER_HOST must begin with http:// or https://");
        }
        values.insert_or_assign(std::string(flag->name), value);
    }
    return {};
}

/// Reads one flag at `at`, which moves behind it and its value.
Status read_flag(const std::vector<std::string>& arguments, std::size_t& at, Values& values,
                 bool& help) {
    std::string_view text = arguments[at++];
    text.remove_prefix(text.starts_with("--") ? 2 : 1);
    std::size_t equals = text.find('=');
    std::string name(text.substr(0, equals));
    if (name == "h" || name == "help") {
        help = true;
        return {};
    }
    auto flag = std::ranges::find(kFlags, name, &Flag::name);
    if (flag == std::end(kFlags)) return invalid("flag provided but not defined: -" + name);
    std::string value = "true";
    if (equals != std::string_view::npos) {
        value = text.substr(equals + 1);
    } else if (flag->kind != Kind::boolean) {
        if (at == arguments.size()) return invalid("flag needs an argument: -" + name);
        value = arguments[at++];
    }
    if (Status checked = check_value(*flag, value, "flag -" + name); !checked) return checked;
    values.insert_or_assign(std::move(name), std::move(value));
    return {};
}

Status take_values(const Values& values, Invocation& out) {
    auto get = [&](std::string_view name) -> std::optional<std::string> {
        auto found = values.find(name);
        return found == values.end() ? std::nullopt : std::optional<std::string>(found->second);
    };
    if (auto port = get("port")) {
        int number = *to_int(*port);
        if (number < 0 || number > 65535) return invalid("-port: must be from 0 to 65535");
        out.options.port = static_cast<std::uint16_t>(number);
    }
    out.options.access_token = get("access-token").value_or("");
    if (auto level = get("log-level")) out.log_level = *to_int(*level);
    out.options.jupyter_host = get("jupyter-host").value_or("");
    out.options.jupyter_token = get("jupyter-token").value_or("");
    out.options.isolation_config = get("isolation-config").value_or("");
    out.options.init = *to_bool(get("init").value_or("false"));
    return {};
}

}  // namespace

Result<Invocation> parse_invocation(const std::vector<std::string>& arguments,
                                    const std::vector<std::pair<std::string, std::string>>& env) {
    Invocation out;
    Values values;
    if (Status read = read_environment(env, values); !read) return read.error();
    std::size_t at = 0;
    while (at < arguments.size() && arguments[at].size() > 1 && arguments[at][0] == '-') {
        if (arguments[at] == "--") {
            ++at;
            break;
        }
        if (Status read = read_flag(arguments, at, values, out.help); !read) return read.error();
    }
    out.options.entrypoint.assign(arguments.begin() + static_cast<std::ptrdiff_t>(at),
                                  arguments.end());
    if (Status applied = take_values(values, out); !applied) return applied.error();
    for (const auto& [name, value] : env) {
        if (name == "EXECD_LOG_FILE") out.log_file = value;
        if (name != "EXECD_ACCESS_TOKEN") out.options.environment.emplace_back(name, value);
    }
    if (!out.options.entrypoint.empty() && !out.options.init && !out.help) {
        return invalid("a command is only taken with -init: " + out.options.entrypoint.front());
    }
    return out;
}

std::string usage() {
    constexpr std::string_view kUsage =
        R"(Usage: opensandbox exec [flags] [-init -- command [argument…]]

  -port n                       TCP port to listen on (44772)
  -access-token text            token that every request must carry; EXECD_ACCESS_TOKEN
  -init                         act as init: own the command, reap orphans; EXECD_INIT
  -log-level n                  3 error, 4 warning, 6 info, 7 debug (6)
  -jupyter-host url             Jupyter server for code contexts; JUPYTER_HOST
  -jupyter-token text           its token; JUPYTER_TOKEN
  -jupyter-idle-poll-interval d accepted for compatibility; EXECD_JUPYTER_IDLE_POLL_INTERVAL
  -graceful-shutdown-timeout d  accepted for compatibility: streams have no fixed tail;
                                EXECD_API_GRACE_SHUTDOWN
  -isolation-config file        settings of isolated sessions, TOML; EXECD_ISOLATION_CONFIG

`opensandbox bootstrap [-c text | command [argument…]]` prepares the environment as bootstrap.sh
does and is -init with that command; so is the executable under the name bootstrap.sh.

Further environment: EXECD_LOG_FILE (up to 64 MiB, three former files are kept), EXECD_ENVS,
EXECD_CLONE3_COMPAT=1 or reexec, EXECD_LEGACY_LINE_EVENTS=1,
OPENSANDBOX_WARM_PYTHON=1 (keep a python interpreter started for the first code context),
of -init and bootstrap: BOOTSTRAP_CMD, BOOTSTRAP_SHELL,
EXECD_BOOTSTRAP_PRE_SCRIPT (bootstrap only), OPENSANDBOX_EGRESS_MITMPROXY_TRANSPARENT.

Metrics go to a collector of OTLP over HTTP where one is named:
)";
    return std::string(kUsage) + telemetry::otlp_help();
}

}  // namespace opensandbox::agent
