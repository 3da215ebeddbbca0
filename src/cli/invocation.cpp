#include "cli/invocation.hpp"

#include <csignal>
#include <cstdlib>

namespace opensandbox::cli {

Interrupts::Interrupts(asio::any_io_executor executor, std::function<void(int)> end)
    : signals_(executor, SIGINT, SIGTERM, SIGHUP), end_(std::move(end)) {
    wait();
}

void Interrupts::wait() {
    signals_.async_wait([this](boost::system::error_code failed, int number) {
        if (failed) return;
        // Whoever asks twice does not want to wait for a thread that is stuck in a write.
        if (received_ != 0) {
            if (before_forced_end_) before_forced_end_();
            std::_Exit(128 + number);
        }
        received_ = number;
        if (handler_) {
            handler_();
        } else {
            end_(128 + number);
        }
        wait();
    });
}

sdk::ConnectionOverrides connection_overrides(Arguments& arguments) {
    constexpr std::int64_t kLongest = 86'400;
    sdk::ConnectionOverrides overrides;
    overrides.domain = arguments.get("--domain");
    if (auto server = arguments.get("--server")) overrides.domain = server;
    overrides.api_key = arguments.get("--api-key");
    if (auto protocol = arguments.get("--protocol")) {
        overrides.protocol = arguments.choice("--protocol", *protocol, {"http", "https"});
    }
    if (overrides.domain) {
        // An address with a scheme says the protocol, too.
        auto scheme = overrides.domain->find("://");
        if (scheme != std::string::npos && !overrides.protocol) {
            overrides.protocol = arguments.choice("--server", overrides.domain->substr(0, scheme),
                                                  {"http", "https"});
        }
    }
    if (auto seconds = arguments.integer("--request-timeout", 1, kLongest)) {
        overrides.request_timeout = std::chrono::seconds(*seconds);
    }
    if (arguments.has("--use-server-proxy")) overrides.use_server_proxy = true;
    if (arguments.has("--no-use-server-proxy")) overrides.use_server_proxy = false;
    if (auto path = arguments.get("--config")) overrides.config_file = *path;
    return overrides;
}

sdk::Result<sdk::Connection> Invocation::connect() {
    auto config = sdk::ConnectionConfig::discover(connection_overrides(arguments_));
    if (!config) return config.error();
    // Who typed a wrong address is to know at once.
    config->retry.unreachable = false;
    return sdk::Connection::open(executor_, std::move(*config));
}

Awaitable<sdk::Result<sdk::Sandbox>> Invocation::sandbox() {
    auto connection = connect();
    if (!connection) co_return connection.error();
    sdk::ConnectOptions options;
    options.skip_health_check = true;
    co_return co_await sdk::Sandbox::connect(*connection, arguments_.one("SANDBOX_ID"),
                                             std::move(options));
}

Outcome Invocation::print_raw(std::string_view text) {
    // A reader that went away (`| head`) got what it wanted.
    terminal_.print(text);
    return kSuccess;
}

Outcome Invocation::print_object(const json::object& document) {
    switch (format_) {
        case Format::json: return print_raw(to_json_text(document));
        case Format::yaml: return print_raw(to_yaml_text(document));
        default: return print_raw(to_key_value_text(document));
    }
}

Outcome Invocation::print_list(const json::value& document, const json::array& rows,
                               const std::vector<Column>& columns) {
    switch (format_) {
        case Format::json: return print_raw(to_json_text(document));
        case Format::yaml: return print_raw(to_yaml_text(document));
        default: break;
    }
    std::string text = to_table_text(rows, columns);
    auto end = text.find('\n');
    return print_raw(terminal_.strong(text.substr(0, end)) + text.substr(end));
}

Outcome Invocation::print_done(std::string_view message) {
    if (format_ == Format::json || format_ == Format::yaml) {
        json::object document;
        document["status"] = "ok";
        document["message"] = message;
        return print_object(document);
    }
    return print_raw(terminal_.good(message) + "\n");
}

}  // namespace opensandbox::cli
