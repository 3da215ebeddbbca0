#pragma once

#include "agent/session/session.hpp"

#include <memory>
#include <string>
#include <unordered_map>

namespace opensandbox::agent {

/// The bash sessions of one agent. They stay until they are deleted.
class SessionTable {
  public:
    static constexpr std::size_t kMaxSessions = 1000;

    /// The context is borrowed.
    explicit SessionTable(const ProcessContext& context) : context_(context) {}

    void observe(RunObserver observer) { observer_ = std::move(observer); }

    /// A new session that begins in `directory`, which is absolute and exists. `resource_exhausted`
    /// when there are too many.
    Result<std::shared_ptr<Session>> create(std::string directory);
    [[nodiscard]] std::shared_ptr<Session> find(const std::string& id) const;
    /// Kills what runs in it and forgets it; false when there is none of this id.
    bool erase(const std::string& id);
    /// Sends a signal to every shell that runs; returns how many there are.
    std::size_t signal_all(int number) const;

  private:
    const ProcessContext& context_;
    StateBudget budget_;
    RunObserver observer_;
    std::unordered_map<std::string, std::shared_ptr<Session>> sessions_;
};

}  // namespace opensandbox::agent
