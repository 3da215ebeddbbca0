#include "mcp/options.hpp"

#include <charconv>
#include <map>

namespace opensandbox::mcp {

const std::string_view kHelp =
    "Usage: opensandbox mcp [OPTIONS]\n"
    "\n"
    "Serves the Model Context Protocol: an agent makes and uses sandboxes with its tools.\n"
    "\n"
    "Options:\n"
    "  --transport stdio|streamable-http\n"
    "                            How clients reach it (default stdio)\n"
    "  --host ADDRESS            Address to listen on (default 127.0.0.1)\n"
    "  --port NUMBER             Port to listen on (default 8000; 0: any); path /mcp\n"
    "  --auth-token TOKEN        Clients must send it as a bearer token\n"
    "                            (env OPENSANDBOX_MCP_AUTH_TOKEN)\n"
    "  --allow-unauthenticated   Listen beyond this machine without a token\n"
    "  --allow-origin ORIGIN     Let pages of this origin in, such as https://example.com;\n"
    "                            may be repeated. Pages of this machine always are.\n"
    "  --max-sessions NUMBER     Clients at a time, 1 to 10000 (default 100)\n"
    "  --session-idle SECONDS    A session unused for so long is ended (default 1800)\n"
    "  --max-calls NUMBER        Calls of one session at a time, 1 to 1000 (default 32)\n"
    "  --max-output BYTES        Of one stream or file in one answer, 1024 to 4194304\n"
    "                            (default 65536)\n"
    "  --domain ADDRESS          OpenSandbox server: HOST or HOST:PORT (env OPEN_SANDBOX_DOMAIN).\n"
    "                            Also --server.\n"
    "  --api-key KEY             Its API key (env OPEN_SANDBOX_API_KEY); found by itself for the\n"
    "                            server on this machine\n"
    "  --protocol http|https     (env OPEN_SANDBOX_PROTOCOL; default http)\n"
    "  --request-timeout-seconds SECONDS\n"
    "                            Limit for one request to it (env OPEN_SANDBOX_REQUEST_TIMEOUT;\n"
    "                            default 30)\n"
    "  --use-server-proxy        Reach sandboxes through the server\n"
    "                            (env OPEN_SANDBOX_USE_SERVER_PROXY)\n"
    "  --no-use-server-proxy     Reach them directly (default)\n"
    "  --config PATH             Configuration file (default ~/.opensandbox/config.toml)\n"
    "  -h, --help                Print this help\n";

namespace {

constexpr std::int64_t kLastPort = 65535;
constexpr std::int64_t kLongestIdle = 86'400;
constexpr std::int64_t kMostSessions = 10'000;
constexpr std::int64_t kMostCalls = 1000;
constexpr std::int64_t kLeastOutput = 1024;
constexpr std::int64_t kMostOutput = std::int64_t{4} << 20U;
constexpr double kLongestTimeout = 86'400;
constexpr double kMilli = 1000;

Error refused(std::string_view option, std::string_view value, std::string_view accepted) {
    return {ErrorCode::invalid_argument,
            std::string(option) + ": '" + std::string(value) + "' is not " + std::string(accepted)};
}

/// The options of one line, one setter each.
class Reader {
  public:
    explicit Reader(Options& into) : into_(into) {}

    Status set(std::string_view name, std::string_view value) {
        if (name == "--transport") return transport(value);
        if (name == "--host") return text(into_.host, name, value);
        if (name == "--auth-token") return text(into_.auth_token, name, value);
        if (name == "--port") return integer(into_.port, name, value, 0, kLastPort);
        if (name == "--max-sessions")
            return integer(into_.max_sessions, name, value, 1, kMostSessions);
        if (name == "--max-calls") return integer(into_.max_calls, name, value, 1, kMostCalls);
        if (name == "--max-output")
            return integer(into_.max_output, name, value, kLeastOutput, kMostOutput);
        if (name == "--session-idle") return idle(name, value);
        if (name == "--allow-origin") return origin(name, value);
        return set_server(name, value);
    }

    bool set_flag(std::string_view name) {
        if (name == "--allow-unauthenticated")
            into_.allow_unauthenticated = true;
        else if (name == "--use-server-proxy")
            into_.server.use_server_proxy = true;
        else if (name == "--no-use-server-proxy")
            into_.server.use_server_proxy = false;
        else if (name == "--help" || name == "-h")
            into_.help = true;
        else
            return false;
        return true;
    }

  private:
    Status set_server(std::string_view name, std::string_view value) {
        if (name == "--domain" || name == "--server") {
            into_.server.domain = std::string(value);
        } else if (name == "--api-key") {
            into_.server.api_key = std::string(value);
        } else if (name == "--config") {
            into_.server.config_file = std::filesystem::path(value);
        } else if (name == "--protocol") {
            if (value != "http" && value != "https") return refused(name, value, "http or https");
            into_.server.protocol = std::string(value);
        } else if (name == "--request-timeout-seconds") {
            return timeout(name, value);
        } else {
            return Error(ErrorCode::invalid_argument, "unknown option: " + std::string(name));
        }
        return {};
    }

    Status transport(std::string_view value) {
        if (value != "stdio" && value != "streamable-http") {
            return refused("--transport", value, "stdio or streamable-http");
        }
        into_.over_http = value != "stdio";
        return {};
    }

    static Status text(std::string& into, std::string_view name, std::string_view value) {
        if (value.empty()) return refused(name, value, "a text of at least one character");
        into = value;
        return {};
    }

    template <class T>
    static Status integer(T& into, std::string_view name, std::string_view value, std::int64_t low,
                          std::int64_t high) {
        std::int64_t number = 0;
        auto [end, failed] = std::from_chars(value.data(), value.data() + value.size(), number);
        if (failed != std::errc() || end != value.data() + value.size() || number < low ||
            number > high) {
            return refused(
                name, value,
                "a whole number from " + std::to_string(low) + " to " + std::to_string(high));
        }
        into = static_cast<T>(number);
        return {};
    }

    Status idle(std::string_view name, std::string_view value) {
        std::int64_t seconds = 0;
        if (Status read = integer(seconds, name, value, 1, kLongestIdle); !read) return read;
        into_.session_idle = std::chrono::seconds(seconds);
        return {};
    }

    Status timeout(std::string_view name, std::string_view value) {
        double seconds = 0;
        auto [end, failed] = std::from_chars(value.data(), value.data() + value.size(), seconds);
        if (failed != std::errc() || end != value.data() + value.size() || !(seconds > 0) ||
            seconds > kLongestTimeout) {
            return refused(name, value, "a number of seconds above 0, up to 86400");
        }
        into_.server.request_timeout =
            std::chrono::milliseconds(static_cast<std::int64_t>(seconds * kMilli));
        return {};
    }

    Status origin(std::string_view name, std::string_view value) {
        if (!value.starts_with("http://") && !value.starts_with("https://")) {
            return refused(name, value, "an origin such as https://example.com");
        }
        into_.allowed_origins.emplace_back(value);
        return {};
    }

    Options& into_;
};

}  // namespace

Result<Options> parse_options(std::span<const std::string_view> words, const Variable& variable) {
    Options options;
    if (auto token = variable("OPENSANDBOX_MCP_AUTH_TOKEN"); token && !token->empty()) {
        options.auth_token = *token;
    }
    Reader reader(options);
    for (std::size_t at = 0; at < words.size(); ++at) {
        const std::string_view word = words[at];
        if (reader.set_flag(word)) continue;
        if (!word.starts_with("--")) {
            return Error(ErrorCode::invalid_argument, "unexpected argument: " + std::string(word));
        }
        const auto equals = word.find('=');
        const std::string_view name = word.substr(0, equals);
        std::string_view value;
        if (equals != std::string_view::npos) {
            value = word.substr(equals + 1);
        } else if (at + 1 < words.size()) {
            value = words[++at];
        } else {
            Status known = reader.set(name, "");
            if (!known && known.error().message().starts_with("unknown")) return known.error();
            return Error(ErrorCode::invalid_argument, std::string(name) + ": a value is missing");
        }
        if (Status set = reader.set(name, value); !set) return set.error();
    }
    return options;
}

}  // namespace opensandbox::mcp
