#include "agent/code/drivers/go_kernel.hpp"

#include "agent/files/replacement_file.hpp"
#include "base/json_string.hpp"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <signal.h>
#include <stdlib.h>

namespace opensandbox::agent {
namespace {

constexpr std::chrono::seconds kGoInterruptGrace{5};
/// A first compilation builds parts of the standard library.
constexpr std::chrono::minutes kCompileLimit{5};
constexpr std::chrono::hours kNoLimit{24 * 365};

Status write_file(const std::string& path, std::string_view text) {
    UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!file) return Error::from_errno(errno, "write " + path);
    return write_fully(file.get(), text, path);
}

std::vector<std::string> lines_of(std::string_view text) {
    std::vector<std::string> out;
    while (!text.empty()) {
        std::string_view line = text.substr(0, text.find('\n'));
        // Its first line names the package, not the cell.
        if (!line.empty() && !line.starts_with('#')) out.emplace_back(line);
        text.remove_prefix(std::min(text.size(), line.size() + 1));
    }
    return out;
}

/// The names of cells stand in messages with the directory of the sources before them.
std::string without_directories(const std::string& line) {
    std::size_t cell = line.find("cell_");
    std::size_t slash = cell == std::string::npos ? cell : line.find_last_of("/ \t", cell);
    if (slash == std::string::npos || line[slash] != '/') return line;
    std::size_t begin = line.find_last_of(" \t", cell);
    begin = begin == std::string::npos ? 0 : begin + 1;
    return line.substr(0, begin) + line.substr(cell);
}

RunEnd interrupted_end() {
    return {"KeyboardInterrupt", "the run was interrupted", {"signal: interrupt"}};
}

RunEnd compile_failure(const std::string& said) {
    std::vector<std::string> lines;
    for (const std::string& line : lines_of(said))
        lines.push_back(without_directories(line));
    std::string first = lines.empty() ? "the compiler failed" : lines.front();
    return {"CompilationError", std::move(first), std::move(lines)};
}

}  // namespace

GoKernel::~GoKernel() {
    if (directory_.empty()) return;
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
}

Awaitable<Status> GoKernel::write_sources(GoProgram::Build build) {
    std::string parent(context_.environment.get("TMPDIR").value_or("/tmp"));
    std::function<Result<std::string>()> write =
        [directory = directory_, parent, source = std::move(build.source),
         result = build.has_result]() mutable -> Result<std::string> {
        if (directory.empty()) {
            directory = parent + "/opensandbox-go-XXXXXX";
            if (::mkdtemp(directory.data()) == nullptr) {
                return Error::from_errno(errno, "make a directory in " + parent);
            }
        }
        if (Status done = write_file(directory + "/main.go", source); !done) return done.error();
        if (!result) return directory;
        Status done = write_file(directory + "/result.go", go_result_source());
        if (!done) return done.error();
        return directory;
    };
    auto written = co_await files_.run(identity_of(context_.user), std::move(write));
    if (!written) co_return written.error();
    directory_ = *written;
    co_return Status();
}

Awaitable<Result<std::string>> GoKernel::compile(GoProgram::Build build) {
    const bool has_result = build.has_result;
    Status written = co_await write_sources(std::move(build));
    if (!written) co_return written.error();
    std::vector<std::string> argv{
        "go", "build", "-ldflags=-s -w", "-o", directory_ + "/cell", directory_ + "/main.go"};
    if (has_result) argv.push_back(directory_ + "/result.go");
    auto compiler = spawn_(argv);
    if (!compiler) co_return compiler.error();
    process_ = *compiler;
    std::string how = co_await process_->wait_end(kCompileLimit);
    bool good = process_->child()->status()->success();
    std::string said = good ? std::string() : process_->pending_error();
    process_.reset();
    if (!good && said.empty()) said = "the compiler ended: " + how;
    co_return said;
}

/// Whether an expression has a value is the compiler's to say.
Awaitable<Result<std::string>> GoKernel::compile_cell(std::string code, GoProgram::Build& build) {
    build = program_.build(code, count_, true);
    auto said = co_await compile(build);
    if (!said || said->empty() || !build.has_result || interrupted_) co_return said;
    GoProgram::Build plain = program_.build(code, count_, false);
    auto again = co_await compile(plain);
    bool no_value = said->find("used as value") != std::string::npos;
    if (!again || again->empty() || no_value) {
        build = std::move(plain);
        co_return again;
    }
    // Without the result it is wrong as well: the shorter message is about the cell alone.
    co_return again;
}

Awaitable<Result<RunEnd>> GoKernel::execute(std::shared_ptr<EventPump> pump) {
    auto started = spawn_({directory_ + "/cell"});
    if (!started) co_return started.error();
    process_ = *started;
    auto process = process_;
    // The program runs already and may have written: that is the run's as well.
    for (auto kind : {EventWriter::Stream::standard_output, EventWriter::Stream::standard_error})
        pump->attach(kind, process->lend(kind, Interpreter::From::start));
    std::string value;
    while (co_await process->next(value)) {
    }
    co_await process->wait_end(kNoLimit);
    process_.reset();
    const ExitStatus status = *process->child()->status();
    RunEnd end;
    if (interrupted_) {
        end = interrupted_end();
    } else if (!status.success()) {
        end = RunEnd("CommandExecError", std::to_string(status.client_code()), {status.describe()});
    } else if (!value.empty()) {
        pump->post([&](EventWriter& events) {
            std::string mime = "{\"text\":";
            append_json_string(mime, value);
            events.execution_count(static_cast<std::int64_t>(count_));
            events.result(mime + "}");
        });
    }
    co_return end;
}

Awaitable<Status> GoKernel::run(std::string code, std::shared_ptr<EventPump> pump) {
    ++count_;
    interrupted_ = false;
    running_ = true;
    Status done = co_await run_cell(std::move(code), pump);
    running_ = false;
    co_return done;
}

Awaitable<Status> GoKernel::run_cell(std::string code, std::shared_ptr<EventPump> pump) {
    GoProgram::Build build;
    auto said = co_await compile_cell(std::move(code), build);
    if (!said) co_return said.error();
    RunEnd end;
    if (interrupted_) {
        end = interrupted_end();
    } else if (!said->empty()) {
        end = compile_failure(*said);
    } else {
        program_.keep(build);
        Result<RunEnd> ran = co_await execute(pump);
        if (!ran) co_return ran.error();
        end = std::move(*ran);
    }
    if (end.failed) pump->post([](EventWriter& events) { events.status("error"); });
    pump->end(std::move(end));
    co_return Status();
}

Awaitable<Status> GoKernel::interrupt() {
    if (!running_) co_return Status();
    interrupted_ = true;
    auto process = process_;
    if (!process) co_return Status();
    process->child()->signal_group(SIGINT);
    co_await process->wait_end(kGoInterruptGrace);
    co_return Status();
}

Awaitable<Status> GoKernel::shut_down() {
    shut_down_ = true;
    interrupted_ = true;
    if (auto process = process_) {
        process->kill();
        co_await process->wait_end(kGoInterruptGrace);
    }
    co_return Status();
}

}  // namespace opensandbox::agent
