#include "agent/role/flags.hpp"

#include "base/clock.hpp"
#include "options/help.hpp"
#include "options/line_reader.hpp"
#include "options/setters.hpp"
#include "telemetry/otlp_settings.hpp"

#include <algorithm>
#include <climits>

namespace opensandbox::agent {
namespace {

constexpr options::Grammar kGrammar{
    .go = true,
    .words = SIZE_MAX,
    .unknown = "flag provided but not defined: {name}",
    .missing = "flag needs an argument: {name}",
    .refused = "invalid value \"{value}\" for flag {name}",
    .refused_variable = "invalid value \"{value}\" for {name}",
};

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

/// Durations mean nothing here; they must be some all the same.
std::string check_duration(const std::string& text) {
    return parse_duration(text) ? "" : "a duration";
}

std::vector<options::Option> flag_table(Invocation& invocation, int& port) {
    using options::bound, options::number, options::text;
    AgentOptions& into = invocation.options;
    return {
        bound({"-port", 0, "n", "TCP port to listen on (44772)"}, number(port, INT_MIN, INT_MAX)),
        bound({"-access-token", 0, "text", "token that every request must carry"},
              text(into.access_token), "EXECD_ACCESS_TOKEN"),
        bound({"-init", 0, "", "act as init: own the command, reap orphans"},
              options::value(into.init, to_bool, "true or false"), "EXECD_INIT"),
        bound({"-log-level", 0, "n", "3 error, 4 warning, 6 info, 7 debug (6)"},
              number(invocation.log_level, INT_MIN, INT_MAX)),
        bound({"-jupyter-host", 0, "url", "Jupyter server for code contexts"},
              text(into.jupyter_host), "JUPYTER_HOST"),
        bound({"-jupyter-token", 0, "text", "its token"}, text(into.jupyter_token),
              "JUPYTER_TOKEN"),
        bound({"-jupyter-idle-poll-interval", 0, "d", "accepted for compatibility"}, check_duration,
              "EXECD_JUPYTER_IDLE_POLL_INTERVAL"),
        bound({"-graceful-shutdown-timeout", 0, "d",
               "accepted for compatibility: streams have no\nfixed tail"},
              check_duration, "EXECD_API_GRACE_SHUTDOWN"),
        bound({"-isolation-config", 0, "file", "settings of isolated sessions, TOML"},
              text(into.isolation_config), "EXECD_ISOLATION_CONFIG"),
        bound({"-help", 'h'}, options::constant(invocation.help, true)),
    };
}

}  // namespace

Result<Invocation> parse_invocation(const std::vector<std::string>& arguments,
                                    const std::vector<std::pair<std::string, std::string>>& env) {
    Invocation out;
    const options::Variable variable = [&](std::string_view name) {
        const auto found = std::find_if(env.rbegin(), env.rend(),
                                        [&](const auto& entry) { return entry.first == name; });
        return found == env.rend() ? std::nullopt : std::optional(found->second);
    };
    const std::string jupyter = variable("JUPYTER_HOST").value_or("");
    if (!jupyter.empty() && !jupyter.starts_with("http://") && !jupyter.starts_with("https://")) {
        return invalid("JUPYTER_HOST must begin with http:// or https://");
    }
    int port = out.options.port;
    auto words = options::parse(flag_table(out, port), kGrammar, arguments, variable);
    if (!words) return words.error();
    if (port < 0 || port > UINT16_MAX) return invalid("-port: must be from 0 to 65535");
    out.options.port = static_cast<std::uint16_t>(port);
    out.options.entrypoint = std::move(*words);
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
    constexpr std::size_t kColumn = 33;
    constexpr std::string_view kHead =
        R"(Usage: opensandbox exec [flags] [-init -- command [argument…]]

)";
    constexpr std::string_view kMore = R"(
`opensandbox bootstrap [-c text | command [argument…]]` prepares the environment as bootstrap.sh
does and is -init with that command; so is the executable under the name bootstrap.sh.

Further environment: EXECD_LOG_FILE (up to 64 MiB, three former files are kept), EXECD_ENVS,
EXECD_CLONE3_COMPAT=1 or reexec, EXECD_LEGACY_LINE_EVENTS=1,
OPENSANDBOX_WARM_PYTHON=1 (keep a python interpreter started for the first code context),
of -init and bootstrap: BOOTSTRAP_CMD, BOOTSTRAP_SHELL,
EXECD_BOOTSTRAP_PRE_SCRIPT (bootstrap only), OPENSANDBOX_EGRESS_MITMPROXY_TRANSPARENT.

Metrics go to a collector of OTLP over HTTP where one is named:
)";
    Invocation none;
    int port = 0;
    return std::string(kHead) + options::help_rows(flag_table(none, port), kColumn) +
           std::string(kMore) + telemetry::otlp_help();
}

}  // namespace opensandbox::agent
