#include "options/help.hpp"
#include "options/line_reader.hpp"
#include "options/setters.hpp"
#include "server/role/startup.hpp"

namespace opensandbox::server {
namespace {

constexpr options::Grammar kServeGrammar{.unknown = "unknown argument '{word}'",
                                         .missing = "{name}: needs a value",
                                         .refused = "{name}: '{value}' must be {rule}"};

std::optional<std::string> absolute_path(const std::string& text) {
    std::error_code ec;
    auto absolute = std::filesystem::absolute(text, ec);
    return text.empty() || ec ? std::nullopt : std::optional(absolute.string());
}

std::vector<options::Option> serve_table(ServeOptions& into) {
    using options::bound;
    return {
        bound({"--config", 0, "FILE",
               "configuration (default: $SANDBOX_CONFIG_PATH, then ~/.sandbox.toml)"},
              options::text(into.config)),
        bound({"--host", 0, "ADDRESS", "where to listen (127.0.0.1)"}, options::text(into.host)),
        bound({"--port", 0, "PORT", "0 lets the kernel choose (8080)"},
              options::number(into.port, 0, UINT16_MAX)),
        bound({"--state-dir", 0, "DIR",
               "everything that is kept (/var/lib/opensandbox, else ~/.opensandbox)"},
              options::value(into.state_dir, absolute_path, "a path")),
        bound({"--log-format", 0, "FORMAT", "text or json (text)"},
              options::value(into.log_format, parse_log_format, "text or json")),
        bound({"--log-level", 0, "LEVEL", "debug, info, warning or error (info)"},
              options::value(into.log_level, parse_log_level, "debug, info, warning or error")),
        bound({"--help", 'h'}, options::constant(into.help, true)),
    };
}

}  // namespace

Result<ServeOptions> parse_serve_options(const std::vector<std::string>& arguments) {
    ServeOptions read;
    auto parsed = options::parse(serve_table(read), kServeGrammar, arguments);
    if (!parsed) return parsed.error();
    return read;
}

void apply(const ServeOptions& options, Config& config) {
    if (options.host) config.host = *options.host == "localhost" ? "127.0.0.1" : *options.host;
    if (options.port) config.port = *options.port;
    if (options.state_dir) config.state_dir = *options.state_dir;
    if (options.log_format) config.log_format = *options.log_format;
    if (options.log_level) config.log_level = *options.log_level;
}

std::string serve_usage() {
    constexpr std::size_t kColumn = 23;
    ServeOptions none;
    return "usage: opensandbox serve [flags]\n"
           "The lifecycle server: creates, runs and removes sandboxes over HTTP.\n" +
           options::help_rows(serve_table(none), kColumn) +
           "When it is ready it prints `listening on http://HOST:PORT` on standard output.\n"
           "Exit codes: 0 after SIGTERM or SIGINT, 1 when it cannot start, 2 for wrong usage.\n";
}

}  // namespace opensandbox::server
