#pragma once

#include "agent/code/drivers/driver.hpp"
#include "agent/code/drivers/interpreter.hpp"
#include "agent/code/kernel.hpp"
#include "agent/files/file_pool.hpp"
#include "agent/process/process_context.hpp"

#include <memory>
#include <string>
#include <vector>

namespace opensandbox::agent {

/// Contexts on the interpreters that the image has.
class DriverProvider final : public KernelProvider {
  public:
    /// Both are borrowed.
    DriverProvider(const ProcessContext& context, FilePool& files)
        : context_(context), files_(files) {}
    DriverProvider(const DriverProvider&) = delete;
    DriverProvider& operator=(const DriverProvider&) = delete;
    ~DriverProvider() override;

    Awaitable<Result<Started>> start(std::string language, std::string cwd) override;
    /// None: they end with the agent.
    Awaitable<Result<std::vector<Found>>> recover() override;

    /// Takes over interpreters for the contexts to come, as far as they live.
    void adopt(std::vector<WarmInterpreter> interpreters);
    /// Starts a python interpreter for the context to come.
    void warm_python();
    /// Sends a signal to the group of every interpreter; returns how many there are.
    std::size_t signal_all(int number);

  private:
    /// An interpreter started ahead of its use, and what it was started with.
    struct Warm {
        std::shared_ptr<Interpreter> interpreter;
        std::vector<std::string> environment;
        bool starting = false;
    };
    Awaitable<Result<std::shared_ptr<Interpreter>>> launch(Driver driver, std::string cwd,
                                                           std::string state);
    Awaitable<std::shared_ptr<Interpreter>> take_warm(std::vector<std::string> environment,
                                                      std::string cwd);
    static Awaitable<void> refill(std::shared_ptr<Warm> warm, DriverProvider& provider);
    Result<std::shared_ptr<Kernel>> start_go(const std::string& cwd);
    Result<std::shared_ptr<Interpreter>> start_process(SpawnRequest request);
    Result<std::shared_ptr<Interpreter>> spawn_driver(const Driver& driver, SpawnRequest request);
    Result<SpawnRequest> prepare_argv(const std::vector<std::string>& argv,
                                      const std::string& cwd) const;
    Result<SpawnRequest> prepare(const Driver& driver, const std::string& cwd) const;
    /// Sends the driver's text and waits until it runs.
    static Awaitable<Status> boot(std::shared_ptr<Interpreter> interpreter, Driver driver,
                                  std::string state);

    const ProcessContext& context_;
    FilePool& files_;
    std::vector<std::weak_ptr<Child>> processes_;
    std::shared_ptr<Warm> warm_;
};

}  // namespace opensandbox::agent
