#include "mcp/options.hpp"

#include "options/help.hpp"
#include "options/setters.hpp"

#include <charconv>

namespace opensandbox::mcp {

namespace {

constexpr std::int64_t kLongestIdle = 86'400;
constexpr std::int64_t kMostSessions = 10'000;
constexpr std::int64_t kMostCalls = 1000;
constexpr std::int64_t kLeastOutput = 1024;
constexpr std::int64_t kMostOutput = std::int64_t{4} << 20U;
constexpr double kLongestTimeout = 86'400;
constexpr double kMilli = 1000;

constexpr options::Grammar kGrammar{.unknown = "unknown option: {name}",
                                    .unexpected = "unexpected argument: {word}",
                                    .missing = "{name}: a value is missing",
                                    .refused = "{name}: '{value}' is not {rule}"};

using Text = std::optional<std::string>;

std::optional<bool> is_over_http(std::string_view text) {
    if (text != "stdio" && text != "streamable-http") return std::nullopt;
    return text != "stdio";
}

Text protocol(const std::string& text) {
    return text == "http" || text == "https" ? Text(text) : std::nullopt;
}

options::Setter some_text(std::string& into) {
    const auto read = [](const std::string& text) { return text.empty() ? Text() : Text(text); };
    return options::value(into, read, "a text of at least one character");
}

std::optional<std::chrono::milliseconds> timeout(std::string_view text) {
    double seconds = 0;
    auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (failed != std::errc() || end != text.data() + text.size() || !(seconds > 0) ||
        seconds > kLongestTimeout) {
        return std::nullopt;
    }
    return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * kMilli));
}

options::Setter origin(std::vector<std::string>& into) {
    return [&into](const std::string& text) -> std::string {
        if (!text.starts_with("http://") && !text.starts_with("https://")) {
            return "an origin such as https://example.com";
        }
        into.push_back(text);
        return {};
    };
}

template <class T>
options::Setter whole(T& into, std::int64_t low, std::int64_t high) {
    return options::number(into, low, high, "a whole number");
}

std::vector<options::Option> table(Options& into) {
    using options::bound, options::constant, options::text;
    return {
        bound({"--transport", 0, "stdio|streamable-http", "How clients reach it (default stdio)"},
              options::value(into.over_http, is_over_http, "stdio or streamable-http")),
        bound({"--host", 0, "ADDRESS", "Address to listen on (default 127.0.0.1)"},
              some_text(into.host)),
        bound({"--port", 0, "NUMBER", "Port to listen on (default 8000; 0: any); path /mcp"},
              whole(into.port, 0, UINT16_MAX)),
        bound({"--auth-token", 0, "TOKEN", "Clients must send it as a bearer token"},
              some_text(into.auth_token), "OPENSANDBOX_MCP_AUTH_TOKEN"),
        bound({"--allow-unauthenticated", 0, "", "Listen beyond this machine without a token"},
              constant(into.allow_unauthenticated, true)),
        bound({"--allow-origin", 0, "ORIGIN",
               "Let pages of this origin in, such as https://example.com;\n"
               "pages of this machine always are.",
               true},
              origin(into.allowed_origins)),
        bound({"--max-sessions", 0, "NUMBER", "Clients at a time, 1 to 10000 (default 100)"},
              whole(into.max_sessions, 1, kMostSessions)),
        bound({"--session-idle", 0, "SECONDS",
               "A session unused for so long is ended (default 1800)"},
              whole(into.session_idle, 1, kLongestIdle)),
        bound(
            {"--max-calls", 0, "NUMBER", "Calls of one session at a time, 1 to 1000 (default 32)"},
            whole(into.max_calls, 1, kMostCalls)),
        bound({"--max-output", 0, "BYTES",
               "Of one stream or file in one answer, 1024 to 4194304\n(default 65536)"},
              whole(into.max_output, kLeastOutput, kMostOutput)),
        bound({"--domain", 0, "ADDRESS",
               "OpenSandbox server: HOST or HOST:PORT (env OPEN_SANDBOX_DOMAIN).\n"
               "Also --server."},
              text(into.server.domain)),
        bound({"--server", 0, "ADDRESS"}, text(into.server.domain)),
        bound({"--api-key", 0, "KEY",
               "Its API key (env OPEN_SANDBOX_API_KEY); found by itself for the\n"
               "server on this machine"},
              text(into.server.api_key)),
        bound({"--protocol", 0, "http|https", "(env OPEN_SANDBOX_PROTOCOL; default http)"},
              options::value(into.server.protocol, protocol, "http or https")),
        bound({"--request-timeout-seconds", 0, "SECONDS",
               "Limit for one request to it (env OPEN_SANDBOX_REQUEST_TIMEOUT;\ndefault 30)"},
              options::value(into.server.request_timeout, timeout,
                             "a number of seconds above 0, up to 86400")),
        bound({"--use-server-proxy", 0, "",
               "Reach sandboxes through the server\n(env OPEN_SANDBOX_USE_SERVER_PROXY)"},
              constant(into.server.use_server_proxy, true)),
        bound({"--no-use-server-proxy", 0, "", "Reach them directly (default)"},
              constant(into.server.use_server_proxy, false)),
        bound({"--config", 0, "PATH", "Configuration file (default ~/.opensandbox/config.toml)"},
              text(into.server.config_file)),
        bound({"--help", 'h', "", "Print this help"}, constant(into.help, true)),
    };
}

}  // namespace

Result<Options> parse_options(std::span<const std::string> words,
                              const options::Variable& variable) {
    Options read;
    auto parsed = options::parse(table(read), kGrammar, words, variable);
    if (!parsed) return parsed.error();
    return read;
}

std::string help() {
    constexpr std::size_t kColumn = 28;
    Options none;
    return "Usage: opensandbox mcp [OPTIONS]\n"
           "\n"
           "Serves the Model Context Protocol: an agent makes and uses sandboxes with its tools.\n"
           "\n"
           "Options:\n" +
           options::help_rows(table(none), kColumn);
}

}  // namespace opensandbox::mcp
