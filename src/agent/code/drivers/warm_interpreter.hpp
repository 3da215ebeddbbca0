#pragma once

#include "agent/process/environment.hpp"
#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "model/warm_program.hpp"

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace opensandbox::agent {

/// An interpreter that was started before its agent was: ready to run code, which only this agent
/// will send it. Killed with its group when nobody took it over.
class WarmInterpreter {
  public:
    /// As whom and where it runs.
    struct Place {
        Environment environment;
        std::string directory = "/";
        std::uint32_t uid = 0;
        std::uint32_t gid = 0;
    };

    /// Starts it, loads what the program says and waits until it is ready. Blocks, at most `limit`;
    /// for processes without an event loop. Errors name the module that cannot be loaded.
    static Result<WarmInterpreter> start(const model::WarmProgram& program, const Place& place,
                                         std::chrono::milliseconds limit);
    WarmInterpreter(WarmInterpreter&& other) noexcept;
    WarmInterpreter& operator=(WarmInterpreter&& other) noexcept;
    ~WarmInterpreter();

    [[nodiscard]] const std::string& language() const { return language_; }
    /// What it was started with, "NAME=value".
    [[nodiscard]] const std::vector<std::string>& environment() const { return environment_; }
    [[nodiscard]] bool alive() const;

    /// Its process and the descriptors of its control channel and outputs, for whoever takes it
    /// over.
    struct Parts {
        pid_t pid = 0;
        UniqueFd control;
        UniqueFd output;
        UniqueFd error;
    };
    Parts release();

  private:
    WarmInterpreter() = default;
    Status load(const model::WarmProgram& program, std::chrono::steady_clock::time_point deadline);
    Status exchange(std::string_view frames, std::chrono::steady_clock::time_point deadline);
    void kill();

    std::string language_;
    std::vector<std::string> environment_;
    Parts parts_;
};

/// Whether an interpreter that was started with `before` can take on `after` once it runs: names
/// that only count at the start of a program stay as they were. Both as "NAME=value", sorted. Pure.
bool can_take_on(const std::vector<std::string>& before, const std::vector<std::string>& after);

/// The environment as the payload of a frame: entries, each ended by NUL.
std::string environment_payload(const std::vector<std::string>& entries);

}  // namespace opensandbox::agent
