#include "agent/code/drivers/provider.hpp"

#include "agent/code/drivers/driver_kernel.hpp"
#include "agent/code/drivers/go_kernel.hpp"
#include "agent/command/request.hpp"
#include "agent/files/replacement_file.hpp"
#include "base/identifier.hpp"
#include "base/log.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

/// A cold JVM on a busy machine takes a while.
constexpr std::chrono::seconds kStartLimit{60};
constexpr std::chrono::milliseconds kProviderEndGrace{500};
/// The next warm interpreter starts when the first run of this one is likely over.
constexpr std::chrono::milliseconds kRefillAfter{100};

std::optional<std::string_view> path_of(const std::vector<std::string>& environment) {
    for (const std::string& entry : environment) {
        if (entry.starts_with("PATH=")) return std::string_view(entry).substr(5);
    }
    return std::nullopt;
}

Result<UniqueFd> file_in_memory(std::string_view text) {
    UniqueFd file(::memfd_create("driver", MFD_CLOEXEC));
    if (!file) return Error::from_errno(errno, "make a file in memory");
    if (Status written = write_fully(file.get(), text, "driver"); !written) return written.error();
    return file;
}

Error not_installed(const Driver& driver) {
    return {ErrorCode::not_found, std::string(driver.language) +
                                      " is not available here: looked for " +
                                      std::string(driver.looked_for)};
}

}  // namespace

DriverProvider::~DriverProvider() = default;

Result<SpawnRequest> DriverProvider::prepare_argv(const std::vector<std::string>& argv,
                                                  const std::string& cwd) const {
    if (context_.stopping) return Error(ErrorCode::unavailable, "the agent is ending");
    struct stat info{};
    if (!cwd.empty() && (::stat(cwd.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))) {
        return Error(ErrorCode::invalid_argument, "cwd: " + cwd + " is no directory");
    }
    CommandRequest command;
    command.argv = argv;
    Result<SpawnRequest> request = prepare_command(context_, command);
    if (request) request->directory = cwd;
    return request;
}

Result<SpawnRequest> DriverProvider::prepare(const Driver& driver, const std::string& cwd) const {
    Result<SpawnRequest> request = prepare_argv({std::string(driver.language)}, cwd);
    if (request) request->programs = driver.programs(path_of(request->environment));
    return request;
}

Result<std::shared_ptr<Interpreter>> DriverProvider::start_process(SpawnRequest request) {
    auto started = Interpreter::start(context_.executor, context_.reaper, std::move(request));
    if (!started) return started;
    std::erase_if(processes_, [](const std::weak_ptr<Child>& child) { return child.expired(); });
    processes_.push_back((*started)->child());
    return started;
}

Result<std::shared_ptr<Kernel>> DriverProvider::start_go(const std::string& cwd) {
    Result<SpawnRequest> request = prepare_argv({"go"}, cwd);
    if (!request) return request.error();
    bool found = std::ranges::any_of(request->programs.front().paths, [](const std::string& path) {
        return ::access(path.c_str(), X_OK) == 0;
    });
    if (!found) {
        return Error(ErrorCode::not_found, "go is not available here: looked for go in PATH");
    }
    GoKernel::Spawn spawn = [this, cwd](const std::vector<std::string>& argv) {
        Result<SpawnRequest> wanted = prepare_argv(argv, cwd);
        if (!wanted) return Result<std::shared_ptr<Interpreter>>(wanted.error());
        return start_process(std::move(*wanted));
    };
    return std::shared_ptr<Kernel>(std::make_shared<GoKernel>(context_, files_, std::move(spawn)));
}

Result<std::shared_ptr<Interpreter>> DriverProvider::spawn_driver(const Driver& driver,
                                                                  SpawnRequest request) {
    UniqueFd file;
    if (!driver.file.empty()) {
        Result<UniqueFd> made = file_in_memory(driver.file);
        if (!made) return made.error();
        file = std::move(*made);
        request.passed = {file.get()};
    }
    auto started = start_process(std::move(request));
    if (!started) {
        if (started.error().code() == ErrorCode::not_found) return not_installed(driver);
        return started.error();
    }
    return started;
}

Awaitable<Status> DriverProvider::boot(std::shared_ptr<Interpreter> interpreter, Driver driver,
                                       std::string state) {
    auto executor = co_await asio::this_coro::executor;
    net::Deadline deadline(executor, kStartLimit, [interpreter] { interpreter->kill(); });
    for (std::string_view text : {driver.program, driver.library}) {
        if (text.empty()) continue;
        co_await interpreter->send(ControlFrame::Kind::program, std::string(text));
    }
    if (driver.keeps_state) {
        co_await interpreter->send(ControlFrame::Kind::state, std::move(state));
    }
    std::string none;
    Result<ControlMessage> first = co_await interpreter->next(none);
    if (first && first->type == ControlMessage::Type::ready) co_return Status();
    std::string reason = "the " + std::string(driver.language) + " interpreter did not start";
    if (first && first->type == ControlMessage::Type::error) {
        interpreter->kill();
        co_return Error(ErrorCode::not_found, first->end.value);
    }
    std::string how = co_await interpreter->wait_end(kProviderEndGrace);
    reason += " (" + how + ")";
    std::string said = interpreter->pending_error();
    if (!said.empty()) reason += ": " + said;
    co_return Error(ErrorCode::internal, reason);
}

Awaitable<Result<std::shared_ptr<Interpreter>>> DriverProvider::launch(Driver driver,
                                                                       std::string cwd,
                                                                       std::string state) {
    Result<SpawnRequest> request = prepare(driver, cwd);
    if (!request) co_return request.error();
    if (driver.language == "python") {
        auto warm = co_await take_warm(request->environment, cwd);
        warm_python();
        if (warm) co_return warm;
    }
    auto started = spawn_driver(driver, std::move(*request));
    if (!started) co_return started.error();
    Status booted = co_await boot(*started, driver, std::move(state));
    if (!booted) co_return booted.error();
    co_return started;
}

Awaitable<std::shared_ptr<Interpreter>> DriverProvider::take_warm(
    std::vector<std::string> environment, std::string cwd) {
    if (!warm_ || !warm_->interpreter) co_return nullptr;
    auto interpreter = std::move(warm_->interpreter);
    warm_->interpreter.reset();
    if (interpreter->ended() || !can_take_on(warm_->environment, environment)) {
        co_return nullptr;
    }
    std::vector<std::pair<ControlFrame::Kind, std::string>> changes;
    if (warm_->environment != environment) {
        changes.emplace_back(ControlFrame::Kind::environment, environment_payload(environment));
    }
    if (!cwd.empty()) changes.emplace_back(ControlFrame::Kind::directory, std::move(cwd));
    auto executor = co_await asio::this_coro::executor;
    net::Deadline deadline(executor, kStartLimit, [interpreter] { interpreter->kill(); });
    for (auto& [kind, payload] : changes) {
        co_await interpreter->send(kind, std::move(payload));
        std::string none;
        Result<ControlMessage> done = co_await interpreter->next(none);
        if (!done || done->type != ControlMessage::Type::ready) co_return nullptr;
    }
    co_return interpreter;
}

void DriverProvider::adopt(std::vector<WarmInterpreter> interpreters) {
    for (WarmInterpreter& warm : interpreters) {
        if (!warm.alive()) continue;
        std::vector<std::string> environment = warm.environment();
        auto taken = Interpreter::adopt(context_.executor, context_.reaper, std::move(warm));
        if (!taken) {
            log::warn("a warm interpreter is lost", {{"reason", taken.error().message()}});
            continue;
        }
        processes_.push_back((*taken)->child());
        warm_ = std::make_shared<Warm>();
        warm_->interpreter = std::move(*taken);
        warm_->environment = std::move(environment);
    }
}

void DriverProvider::warm_python() {
    if (!warm_) warm_ = std::make_shared<Warm>();
    if (warm_->starting || warm_->interpreter) return;
    warm_->starting = true;
    net::spawn(context_.executor, refill(warm_, *this), "warm python");
}

Awaitable<void> DriverProvider::refill(std::shared_ptr<Warm> warm, DriverProvider& provider) {
    co_await net::sleep_for(kRefillAfter);
    const Driver& python = *find_driver("python");
    Result<SpawnRequest> request = provider.prepare(python, "");
    if (request) {
        warm->environment = request->environment;
        auto started = provider.spawn_driver(python, std::move(*request));
        if (started) {
            Status booted = co_await boot(*started, python, "");
            if (booted) warm->interpreter = std::move(*started);
        }
    }
    warm->starting = false;
}

Awaitable<Result<KernelProvider::Started>> DriverProvider::start(std::string language,
                                                                 std::string cwd) {
    if (language == "go") {
        Result<std::shared_ptr<Kernel>> go = start_go(cwd);
        if (!go) co_return go.error();
        Started made(new_uuid(), std::move(*go));
        co_return made;
    }
    const Driver* driver = find_driver(language);
    if (!driver) co_return Error(ErrorCode::not_found, "unknown language: " + language);
    auto interpreter = co_await launch(*driver, cwd, "");
    if (!interpreter) co_return interpreter.error();
    DriverKernel::Launch again = [this, driver, cwd](std::string state) {
        return launch(*driver, cwd, std::move(state));
    };
    std::shared_ptr<Kernel> kernel =
        std::make_shared<DriverKernel>(language, std::move(*interpreter), std::move(again));
    Started made(new_uuid(), std::move(kernel));
    co_return made;
}

Awaitable<Result<std::vector<KernelProvider::Found>>> DriverProvider::recover() {
    std::vector<Found> none;
    co_return none;
}

std::size_t DriverProvider::signal_all(int number) {
    std::size_t running = 0;
    for (const auto& weak : processes_) {
        auto child = weak.lock();
        if (!child || child->status()) continue;
        ++running;
        child->signal_group(number);
    }
    return running;
}

}  // namespace opensandbox::agent
