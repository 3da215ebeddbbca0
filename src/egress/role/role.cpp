#include "egress/role/role.hpp"

#include "base/freed_memory.hpp"
#include "base/log.hpp"
#include "base/log_file.hpp"
#include "base/log_form.hpp"
#include "egress/role/help.hpp"
#include "egress/role/sidecar.hpp"
#include "egress/role/supervisor.hpp"
#include "egress/settings/help.hpp"
#include "egress/settings/table.hpp"
#include "net/task.hpp"
#include "options/line_reader.hpp"
#include "options/setters.hpp"
#include "version.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <iostream>
#include <unistd.h>

namespace opensandbox::egress {

namespace {

constexpr std::chrono::seconds kStopGrace{5};
constexpr std::int64_t kLogBytes = 100LL << 20;
constexpr std::int64_t kLogFiles = 10;

std::optional<std::string> variable(std::string_view name) {
    const char* value = std::getenv(std::string(name).c_str());
    if (value == nullptr) return std::nullopt;
    return value;
}

/// The kernel shows a process's first environment to others: secrets go from it once they were
/// read.
void hide_secrets() {
    for (const Setting& setting : settings()) {
        if (!setting.secret) continue;
        const std::string name = setting.variable();
        if (char* value = std::getenv(name.c_str())) std::memset(value, 0, std::strlen(value));
        ::unsetenv(name.c_str());
    }
}

/// The files among the outputs of the log.
class LogFiles final : public log::Writer {
  public:
    Status open(const std::vector<std::string>& outputs) {
        for (const std::string& output : outputs) {
            if (output == "stdout" || output == "stderr") continue;
            auto file = log::RotatingFile::open(output, kLogBytes, kLogFiles);
            if (!file) return file.error();
            files_.push_back(std::move(*file));
        }
        return {};
    }
    void write(std::string_view, std::string_view line) override {
        for (const auto& file : files_)
            file->append(line);
    }

  private:
    std::vector<std::unique_ptr<log::RotatingFile>> files_;
};

/// Logs go where the options say while this exists.
class Logging {
  public:
    Logging() {
        log::configure(log::Level::info, log::Format::json, STDOUT_FILENO);
        log::use_logger(&logger_);
    }
    Logging(const Logging&) = delete;
    Logging& operator=(const Logging&) = delete;
    ~Logging() {
        log::attach(nullptr);
        log::use_logger(nullptr);
    }

    Status configure(const SidecarOptions& options) {
        const auto has = [&](std::string_view name) {
            return std::ranges::find(options.log_outputs, name) != options.log_outputs.end();
        };
        int fd = has("stdout") ? STDOUT_FILENO : STDERR_FILENO;
        if (!has("stdout") && !has("stderr")) {
            nowhere_.reset(::open("/dev/null", O_WRONLY | O_CLOEXEC));
            if (nowhere_) fd = nowhere_.get();
        }
        log::configure(options.log_level, log::Format::json, fd);
        if (!options.sandbox_id.empty()) {
            logger_.attributes.emplace_back("sandbox_id", options.sandbox_id);
        }
        logger_.attributes.insert(logger_.attributes.end(), options.extra_attributes.begin(),
                                  options.extra_attributes.end());
        if (Status opened = files_.open(options.log_outputs); !opened) return opened;
        log::attach(&files_);
        return {};
    }

  private:
    log::NamedLogger logger_{"opensandbox.egress"};
    LogFiles files_;
    UniqueFd nowhere_;
};

Result<SidecarSettings> read_settings() {
    Result<ParsedEnvironment> parsed = parse_environment(variable);
    if (!parsed) return parsed.error();
    SidecarSettings settings;
    settings.options = std::move(parsed->options);
    settings.dns = std::move(parsed->dns);
    auto otlp = telemetry::read_otlp_settings(variable, telemetry::read_hostinfo());
    if (otlp) {
        settings.otlp = std::move(*otlp);
        if (settings.otlp) telemetry::log_ignored(*settings.otlp);
    } else {
        log::warn("metrics are not exported", {{"error", otlp.error().message()}});
    }
    for (const std::string& warning : parsed->warnings)
        log::warn(warning);
    return settings;
}

/// `ready`: told with a byte, unless it is -1.
Awaitable<void> start(Sidecar& sidecar, asio::io_context& loop, int ready, int& exit_code) {
    const Status started = co_await sidecar.start();
    if (started) {
        if (ready >= 0 && ::write(ready, "1", 1) != 1) log::warn("nobody waits for this process");
        log::info("egress control is in force", {{"port", sidecar.port()}});
        co_return;
    }
    log::error("egress control cannot start", {{"error", started.error().message()}});
    exit_code = 1;
    loop.stop();
}

Awaitable<void> stop(Sidecar& sidecar, asio::io_context& loop) {
    co_await sidecar.stop(kStopGrace);
    loop.stop();
}

int run(SidecarSettings settings, int ready) {
    keep_freed_memory();
    asio::io_context loop(1);
    int exit_code = 0;
    {
        Sidecar sidecar(loop.get_executor(), std::move(settings));
        asio::signal_set signals(loop, SIGTERM, SIGINT);
        signals.async_wait([&](const boost::system::error_code& failed, int) {
            if (failed) return;
            log::info("egress control ends; what is refused stays refused");
            net::spawn(loop.get_executor(), stop(sidecar, loop), "stop");
        });
        net::spawn(loop.get_executor(), start(sidecar, loop, ready, exit_code), "start");
        loop.run();
        // What was cut ends while the parts that it uses are still there.
        loop.restart();
        loop.poll();
    }
    return exit_code;
}

int run_supervised(SidecarSettings settings) {
    Result<UniqueFd> api = listen_for_api(settings.options.http);
    if (!api) {
        log::error("egress control cannot start", {{"error", api.error().message()}});
        return 1;
    }
    settings.api_socket = api->get();
    return supervise([&settings](int ready) { return run(settings, ready); });
}

}  // namespace

int run_sidecar(int argc, char** argv) {
    bool supervised = false;
    bool help = false;
    const std::vector<options::Option> table{
        options::bound({"--supervised"}, options::constant(supervised, true)),
        options::bound({"--help", 'h'}, options::constant(help, true)),
    };
    const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
    const bool understood = options::parse(table, options::Grammar(), words).has_value();
    if (help || !understood) {
        (understood ? std::cout : std::cerr) << kHelpBeforeSettings << settings_help()
                                             << kHelpBehindSettings << telemetry::otlp_help();
        return understood ? 0 : 2;
    }
    Logging logging;
    log::info("OpenSandbox egress", {{"version", kVersion}});
    Result<SidecarSettings> settings = read_settings();
    hide_secrets();
    if (!settings) {
        log::error("egress control cannot start", {{"error", settings.error().message()}});
        return 1;
    }
    if (Status configured = logging.configure(settings->options); !configured) {
        log::error("egress control cannot start", {{"error", configured.error().message()}});
        return 1;
    }
    if (settings->options.token.empty()) {
        log::warn("no token is set: whoever reaches the port may change the policy");
    }
    if (supervised) return run_supervised(std::move(*settings));
    constexpr int kNobodyWaits = -1;
    return run(std::move(*settings), kNobodyWaits);
}

}  // namespace opensandbox::egress
