#pragma once

#include "agent/code/drivers/go_cell.hpp"
#include "agent/code/drivers/interpreter.hpp"
#include "agent/code/kernel.hpp"
#include "agent/files/file_pool.hpp"
#include "agent/process/process_context.hpp"

#include <functional>

namespace opensandbox::agent {

/// A context of Go: every run compiles a program of the declarations so far and the cell, and
/// starts it. What GoProgram says about variables holds.
class GoKernel final : public Kernel {
  public:
    /// Starts a process in the context's directory with these arguments; bare names are looked up.
    using Spawn =
        std::function<Result<std::shared_ptr<Interpreter>>(const std::vector<std::string>& argv)>;

    /// Context and files are borrowed.
    GoKernel(const ProcessContext& context, FilePool& files, Spawn spawn)
        : context_(context), files_(files), spawn_(std::move(spawn)) {}
    GoKernel(const GoKernel&) = delete;
    GoKernel& operator=(const GoKernel&) = delete;
    ~GoKernel() override;

    Awaitable<Status> run(std::string code, std::shared_ptr<EventPump> pump) override;
    /// SIGINT to what compiles or runs, SIGKILL 5 s later.
    Awaitable<Status> interrupt() override;
    Awaitable<Status> shut_down() override;
    [[nodiscard]] bool alive() const override { return !shut_down_; }

  private:
    Awaitable<Status> run_cell(std::string code, std::shared_ptr<EventPump> pump);
    /// Empty after success, else what the compiler says.
    Awaitable<Result<std::string>> compile(GoProgram::Build build);
    Awaitable<Status> write_sources(GoProgram::Build build);
    Awaitable<Result<std::string>> compile_cell(std::string code, GoProgram::Build& build);
    Awaitable<Result<RunEnd>> execute(std::shared_ptr<EventPump> pump);

    const ProcessContext& context_;
    FilePool& files_;
    Spawn spawn_;
    GoProgram program_;
    std::string directory_;  ///< private, made by the first run
    std::shared_ptr<Interpreter> process_;
    std::size_t count_ = 0;
    bool running_ = false;
    bool interrupted_ = false;
    bool shut_down_ = false;
};

}  // namespace opensandbox::agent
