#pragma once

#include "runtime/native/slots/background_job.hpp"
#include "runtime/native/spawner/snapshots/snapshot_files.hpp"

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace opensandbox::runtime::native {

/// The spawner's view of all snapshots. Removing one takes its name; a layer goes with the last
/// snapshot or sandbox that stands on it.
class SnapshotTable {
  public:
    using Done = std::function<void(Status)>;
    /// Names of the layers below all sandboxes.
    using InUse = std::function<std::set<std::string>()>;

    /// Borrows both.
    SnapshotTable(EventLoop& loop, const Host& host)
        : jobs_(loop, host), files_(host.options.state_directory) {}

    /// Finds what is there. Drops what was half made, and what a crash of the machine may have
    /// damaged.
    Status start(InUse in_use);

    [[nodiscard]] const SnapshotFiles& files() const { return files_; }
    [[nodiscard]] bool exists(const std::string& id) const { return chains_.contains(id); }

    /// Copies the writable layers in `slot`, which nobody may write to until it is done. On
    /// failure nothing is left. Returns what to cancel it by.
    std::uint64_t make(const SnapshotRecord& record, const std::filesystem::path& slot, Done done);
    void cancel(std::uint64_t job) { jobs_.cancel(job); }
    Status remove(const std::string& id);
    /// Discards layers on which nothing stands any more.
    void sweep();
    [[nodiscard]] bool idle() const { return jobs_.idle(); }

  private:
    void remove_gone();

    BackgroundJobs jobs_;
    SnapshotFiles files_;
    InUse in_use_;
    std::map<std::string, std::vector<std::string>> chains_;  ///< layers of each snapshot
    std::set<std::string> making_;
    bool removing_ = false;
    bool remove_again_ = false;
};

}  // namespace opensandbox::runtime::native
