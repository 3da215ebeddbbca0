#include "base/identifier.hpp"
#include "base/scope_exit.hpp"
#include "base/unique_fd.hpp"
#include "cli/duration.hpp"
#include "cli/invocation.hpp"
#include "sdk/document/describe.hpp"
#include "sdk/stdio/write_fully.hpp"
#include "sdk/transport.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <toml++/toml.h>
#include <unistd.h>

namespace opensandbox::cli {

namespace {

constexpr std::string_view kTemplate =
    R"(# Configuration of the opensandbox command line.
# Stronger than this file: the environment, and above it the options.

[connection]
# api_key = "…"                  # not needed for the server on this machine
# domain = "127.0.0.1:8080"
# protocol = "http"
# request_timeout = 30           # seconds
# use_server_proxy = false

[output]
# color = true

[defaults]
# image = "host"
# timeout = "10m"                # or "none"
)";

enum class Kind : unsigned char { text, integer, boolean, protocol, lifetime };

struct Key {
    std::string_view section;
    std::string_view name;
    Kind kind;
};

constexpr std::array kKeys{Key{"connection", "api_key", Kind::text},
                           Key{"connection", "domain", Kind::text},
                           Key{"connection", "protocol", Kind::protocol},
                           Key{"connection", "request_timeout", Kind::integer},
                           Key{"connection", "use_server_proxy", Kind::boolean},
                           Key{"output", "color", Kind::boolean},
                           Key{"defaults", "image", Kind::text},
                           Key{"defaults", "timeout", Kind::lifetime}};

std::filesystem::path config_path(Arguments& arguments) {
    auto given = arguments.get("--config");
    return given ? std::filesystem::path(*given) : sdk::default_config_path();
}

/// Shows that there is a key without showing it.
std::string masked(const std::string& key) {
    if (key.size() <= 8) return std::string(key.size(), '*');
    return key.substr(0, 4) + "****" + key.substr(key.size() - 4);
}

Awaitable<Outcome> show(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    const auto path = config_path(arguments);
    const auto overrides = connection_overrides(arguments);
    if (arguments.problem()) co_return *arguments.problem();
    std::error_code ignored;
    const bool exists = std::filesystem::exists(path, ignored);
    auto readable = overrides;
    if (!exists) readable.config_file.reset();
    auto config = sdk::ConnectionConfig::discover(readable);
    if (!config) co_return config.error();
    const sdk::ConfigFile& file = invocation.file();
    json::object document;
    document["api_key"] =
        config->api_key.empty() ? json::value() : json::value(masked(config->api_key));
    document["domain"] = config->domain;
    document["protocol"] = config->protocol;
    document["request_timeout"] =
        std::chrono::duration_cast<std::chrono::seconds>(config->request_timeout).count();
    document["use_server_proxy"] = config->use_server_proxy;
    document["color"] = file.color.value_or(true);
    document["default_image"] = sdk::or_null(file.default_image);
    document["default_timeout"] = sdk::or_null(file.default_timeout);
    document["config_path"] = path.string();
    document["config_file_exists"] = exists;
    co_return invocation.print_object(document);
}

sdk::Error errno_error(const std::string& what) {
    return sdk::to_public(opensandbox::Error::from_errno(errno, what));
}

/// The file may hold a key: nobody but its owner may ever read it, and it is replaced whole or not
/// at all.
sdk::Status save(const std::filesystem::path& path, const std::string& text) {
    std::error_code failed;
    if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), failed);
    if (failed) {
        return sdk::Error(sdk::ErrorCode::io,
                          "make " + path.parent_path().string() + ": " + failed.message());
    }
    const std::string temporary = path.string() + ".part-" + new_hex_id();
    UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!fd) return errno_error("create a file beside " + path.string());
    ScopeExit abandoned([&] { ::unlink(temporary.c_str()); });
    if (!sdk::write_fully(fd.get(), text)) return errno_error("write " + temporary);
    if (::rename(temporary.c_str(), path.c_str()) != 0) {
        return errno_error("rename to " + path.string());
    }
    abandoned.dismiss();
    return {};
}

Awaitable<Outcome> init(Invocation& invocation) {
    const auto path = config_path(invocation.arguments());
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored) && !invocation.arguments().has("--force")) {
        co_return sdk::Error(sdk::ErrorCode::conflict,
                             path.string() + " exists already; --force replaces it");
    }
    auto saved = save(path, std::string(kTemplate));
    if (!saved) co_return saved.error();
    co_return invocation.print_done("Config file created: " + path.string());
}

/// The value as TOML spells it; empty when it is not of the key's kind.
std::optional<std::string> to_toml(Arguments& arguments, const Key& key, const std::string& value) {
    const std::string name = std::string(key.section) + "." + std::string(key.name);
    switch (key.kind) {
        case Kind::integer: {
            int number = 0;
            auto [end, failed] = std::from_chars(value.data(), value.data() + value.size(), number);
            if (failed == std::errc() && end == value.data() + value.size() && number > 0)
                return value;
            arguments.refuse(name, value, "a whole number of seconds");
            return std::nullopt;
        }
        case Kind::boolean: return arguments.choice(name, value, {"true", "false"});
        case Kind::protocol:
            if (!arguments.choice(name, value, {"http", "https"})) return std::nullopt;
            break;
        case Kind::lifetime:
            if (value != "none" && !parse_duration_text(value)) {
                arguments.refuse(name, value, "a duration such as 10m, or none");
                return std::nullopt;
            }
            break;
        case Kind::text: break;
    }
    std::ostringstream quoted;
    quoted << toml::node_view<const toml::node>(toml::value<std::string>(value));
    return quoted.str();
}

std::string_view trimmed_line(std::string_view line) {
    const auto first = line.find_first_not_of(" \t");
    return first == std::string_view::npos ? std::string_view() : line.substr(first);
}

/// Whether the line sets the key (a comment does not).
bool sets_key(std::string_view line, std::string_view name) {
    line = trimmed_line(line);
    if (!line.starts_with(name)) return false;
    line.remove_prefix(name.size());
    return trimmed_line(line).starts_with('=');
}

/// Puts `name = value` into its section, in place of an earlier one; comments and order stay.
std::string with_value(std::string_view text, const Key& key, const std::string& value) {
    const std::string header = "[" + std::string(key.section) + "]";
    const std::string wanted = std::string(key.name) + " = " + value;
    std::vector<std::string> lines;
    std::istringstream in{std::string(text)};
    for (std::string line; std::getline(in, line);)
        lines.push_back(std::move(line));
    std::optional<std::size_t> section;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        if (trimmed_line(lines[i]).starts_with('[')) {
            if (section) break;
            if (trimmed_line(lines[i]).starts_with(header)) section = i;
        } else if (section && sets_key(lines[i], key.name)) {
            lines[i] = wanted;
            section.reset();
            std::string out;
            for (const auto& line : lines)
                out += line + "\n";
            return out;
        }
    }
    if (section) {
        lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(*section) + 1, wanted);
    } else {
        lines.insert(lines.end(), {"", header, wanted});
    }
    std::string out;
    for (const auto& line : lines)
        out += line + "\n";
    return out;
}

Awaitable<Outcome> set(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    const std::string name = arguments.one("KEY");
    const std::string value = arguments.one("VALUE");
    const auto key = std::ranges::find_if(kKeys, [&](const Key& k) {
        return name == std::string(k.section) + "." + std::string(k.name);
    });
    if (key == kKeys.end()) {
        std::string names;
        for (const Key& k : kKeys) {
            names +=
                (names.empty() ? "" : ", ") + std::string(k.section) + "." + std::string(k.name);
        }
        co_return Failure::usage("KEY: '" + name + "' is not accepted; use one of " + names);
    }
    auto toml_value = to_toml(arguments, *key, value);
    if (arguments.problem()) co_return *arguments.problem();
    const auto path = config_path(arguments);
    std::ostringstream text;
    if (std::ifstream in(path, std::ios::binary); in) text << in.rdbuf();
    const std::string before = text.str();
    const std::string changed =
        with_value(before.empty() ? kTemplate : std::string_view(before), *key, *toml_value);
    auto checked = sdk::parse_config_file(changed, path.string());
    if (!checked) co_return checked.error();
    auto saved = save(path, changed);
    if (!saved) co_return saved.error();
    const bool secret = key->name == "api_key";
    co_return invocation.print_done("Set " + name + " = " + (secret ? masked(value) : value));
}

}  // namespace

void add_config_commands(CommandTable& table) {
    Command command;
    command.group = "config";
    command.formats = {Format::table, Format::json, Format::yaml};
    command.name = "show";
    command.summary = "Show the configuration in force.";
    command.run = show;
    command.examples = {{"config show", "options, environment and file taken together"}};
    table.commands.push_back(command);

    command.name = "init";
    command.summary = "Write a commented configuration file.";
    command.options = {{"--force", 0, "", "Replace a file that is there."}};
    command.run = init;
    command.examples = {{"config init", "at ~/.opensandbox/config.toml"},
                        {"--config ./team.toml config init --force", "elsewhere, from scratch"}};
    table.commands.push_back(command);

    command.name = "set";
    command.summary = "Set one value in the configuration file.";
    command.options.clear();
    command.positionals = {{"KEY", "section.name, such as connection.domain."},
                           {"VALUE", "Its value."}};
    command.run = set;
    command.examples = {
        {"config set connection.domain sandbox.example:8080", "use another server"},
        {"config set connection.protocol https", "over TLS"},
        {"config set defaults.timeout 1h", "how long sandboxes live unless told otherwise"},
        {"config set output.color false", "no colours"}};
    command.details =
        "Keys: connection.api_key, connection.domain, connection.protocol,\n"
        "connection.request_timeout, connection.use_server_proxy, output.color, defaults.image\n"
        "and defaults.timeout. Comments and order of the file stay.";
    table.commands.push_back(std::move(command));
}

}  // namespace opensandbox::cli
