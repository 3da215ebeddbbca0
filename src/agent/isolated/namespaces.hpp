#pragma once

#include "agent/isolated/namespace_plan.hpp"
#include "agent/process/reaper.hpp"
#include "net/stream.hpp"

#include <memory>
#include <vector>

namespace opensandbox::agent {

/// The namespaces of one session and the process that keeps them. When this object goes, so do all
/// processes and mounts inside.
class SessionNamespaces {
  public:
    /// Builds them. Fails with `unsupported` when this agent may not make namespaces, else with an
    /// error that names the step and the mount.
    static Awaitable<Result<std::shared_ptr<SessionNamespaces>>> create(Reaper& reaper,
                                                                        NamespacePlan plan);
    SessionNamespaces(std::shared_ptr<Child> first, UniqueFd channel);
    SessionNamespaces(const SessionNamespaces&) = delete;
    SessionNamespaces& operator=(const SessionNamespaces&) = delete;
    ~SessionNamespaces();

    /// The first process: it ended when nothing runs inside any more.
    [[nodiscard]] Child& first() { return *first_; }
    /// In the order in which a process enters them.
    [[nodiscard]] std::vector<int> descriptors() const;
    /// The mount namespace, for a thread of the agent that works with the session's files. Kept by
    /// whoever still works there.
    [[nodiscard]] const std::shared_ptr<UniqueFd>& mounts() const { return mounts_; }
    /// Kills all that runs inside.
    void kill();

  private:
    Status take_report(const NamespacePlan& plan);

    std::shared_ptr<Child> first_;
    UniqueFd channel_;
    std::shared_ptr<UniqueFd> mounts_;
    std::vector<UniqueFd> others_;
};

}  // namespace opensandbox::agent
