#pragma once

#include "image/store.hpp"
#include "runtime/native/server/native_runtime.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <iosfwd>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace opensandbox::runtime::test {

/// What of a spawner is on this host: nothing of it may remain.
struct Census {
    std::set<std::string> links;
    std::set<std::string> cgroups;
    std::set<std::string> files;      ///< under the state directory's sandboxes and journal
    std::set<std::string> processes;  ///< pids below the spawner
    friend bool operator==(const Census&, const Census&) = default;
    friend std::ostream& operator<<(std::ostream& out, const Census& census);
};

/// A spawner of its own state directory and address range, and a runtime connected to it. Ends
/// both, with all sandboxes.
class SpawnerFixture {
  public:
    explicit SpawnerFixture(std::uint32_t pool_size = 2, native::WarmOptions warm = {});
    ~SpawnerFixture();

    /// Runs a coroutine of the runtime to its end; fails the test after a minute.
    template <class T>
    T run(std::function<Awaitable<T>()> body);
    Result<AgentAddress> create(const SandboxSpec& spec);
    Status destroy(const std::string& id);
    std::vector<Observed> list();
    Status pause(const std::string& id);
    Status resume(const std::string& id);
    Result<SnapshotReference> snapshot(const std::string& id, const std::string& snapshot_id);
    /// The same; calls `meanwhile` again and again until it returns true.
    Result<SnapshotReference> snapshot(const std::string& id, const std::string& snapshot_id,
                                       const std::function<bool()>& meanwhile);
    Result<SnapshotReference> fork(const std::string& id, const std::string& fork_id);
    Result<SnapshotContent> open_snapshot(const std::string& snapshot_id);
    Status remove_snapshot(const std::string& snapshot_id);
    Result<std::string> logs(const std::string& id, const LogQuery& query);
    Result<Inspection> inspect(const std::string& id);
    /// A directory of the host that volumes may come from.
    [[nodiscard]] std::filesystem::path allowed() const { return state_ / "allowed"; }
    /// Ids of all snapshots, sorted.
    std::set<std::string> snapshots();
    /// Entries of <state>/snapshots but its fixed directories: records, layers, what is going.
    [[nodiscard]] std::set<std::string> snapshot_files() const;
    /// Where the writable layer of a sandbox is.
    [[nodiscard]] std::filesystem::path slot_of(const std::string& id) const;
    [[nodiscard]] const std::filesystem::path& state() const { return state_; }
    [[nodiscard]] image::Store& images() { return *images_; }
    /// Waits until the sandbox's end was told.
    Exit wait_exit(const std::string& id);

    void start_spawner();
    void kill_spawner();
    void connect();
    /// Once nothing goes on that nobody waits for.
    [[nodiscard]] Census census() const;
    /// Waits until the pool has this many blanks.
    void wait_ready(std::uint64_t count);
    /// Waits until the spawner told such figures; false when it never does.
    bool wait_figures(const std::function<bool(const Figures&)>& wanted);
    [[nodiscard]] pid_t agent_of(const std::string& id) const;
    [[nodiscard]] Runtime& runtime() { return *runtime_; }

    /// "sh -c script" in the host's image.
    static SandboxSpec shell(const std::string& script);

  private:
    void await_rest() const;
    std::filesystem::path state_;
    std::string range_;
    std::uint32_t pool_size_;
    native::WarmOptions warm_;
    pid_t spawner_ = 0;
    asio::io_context loop_;
    asio::thread_pool blocking_{1};
    std::unique_ptr<image::Store> images_;
    std::unique_ptr<Runtime> runtime_;
    std::map<std::string, Exit> exits_;
};

/// GET over a fresh connection; the whole response, empty when there is none.
std::string http_get(const AgentAddress& agent, const std::string& path, const std::string& token);

}  // namespace opensandbox::runtime::test
