#pragma once

#include "http/client.hpp"
#include "runtime/bucket_mounts.hpp"
#include "runtime/docker/agent_volume.hpp"
#include "runtime/docker/container_spec.hpp"
#include "runtime/docker/docker_options.hpp"
#include "runtime/docker/engine/engine.hpp"
#include "runtime/docker/host_ports.hpp"
#include "runtime/docker/labels.hpp"
#include "runtime/docker/sidecar_image.hpp"
#include "runtime/docker/sidecar_spec.hpp"
#include "runtime/docker/volume_plan.hpp"
#include "runtime/runtime.hpp"

#include <boost/asio/thread_pool.hpp>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace opensandbox::runtime::docker {

/// What this server knows of one sandbox's objects at the engine.
struct Known {
    std::string container;  ///< id; empty until it was made
    bool sidecar = false;
    std::string sidecar_container;  ///< id; empty when another life of this server made it
    /// Its sidecar's container ended, and the network with it.
    bool cut_off = false;
    bool runtime_volume = false;
    std::vector<std::string> managed_volumes;
    std::vector<std::string> bucket_mounts;
    std::string image_digest;  ///< of its image's manifest, where its registries name one alone
    std::string interception_mode;  ///< of its sidecar, once that is ready

    enum class State : std::uint8_t { running, paused, ended };
    State state = State::running;
    bool creating = false;
    bool destroying = false;
    /// Operations of ours in flight that make events: those are no news.
    int operations = 0;
    bool missed_events = false;  ///< some came during those
};

/// Remains of a create or removal that could not be finished; tried again until nothing is left.
struct Remains {
    Known known;
    std::chrono::steady_clock::time_point until;  ///< looked for until then even if absent
};

/// The runtime. One file a concern: docker_runtime.cpp (start, list), create.cpp, sidecar.cpp,
/// destroy.cpp, pause.cpp, snapshot.cpp, observe.cpp (logs, inspection), watch.cpp (events).
class DockerRuntime final : public Runtime, public std::enable_shared_from_this<DockerRuntime> {
  public:
    DockerRuntime(asio::any_io_executor executor, asio::thread_pool& blocking,
                  DockerOptions options, EngineAddress address);

    [[nodiscard]] std::string_view error_prefix() const override { return "DOCKER"; }
    Awaitable<Status> start() override;
    Awaitable<Result<Endpoints>> create(SandboxSpec spec) override;
    [[nodiscard]] std::string image_digest(const std::string& id) const override;
    [[nodiscard]] std::string interception_mode(const std::string& id) const override;
    Awaitable<Status> destroy(std::string id) override;
    Awaitable<Result<std::vector<Observed>>> list() override;
    void on_exit(std::function<void(const std::string&, const Exit&)> listener) override;
    void on_change(std::function<void(const std::string&, Change)> listener) override;
    [[nodiscard]] Figures figures() const override;
    [[nodiscard]] Capabilities capabilities() const override;
    Awaitable<Status> pause(std::string id) override;
    Awaitable<Status> resume(std::string id) override;
    Awaitable<Result<SnapshotReference>> snapshot(std::string sandbox_id,
                                                  std::string snapshot_id) override;
    Awaitable<Status> remove_snapshot(SnapshotReference snapshot) override;
    Awaitable<Result<std::vector<SnapshotReference>>> list_snapshots() override;
    Awaitable<Result<std::string>> logs(std::string id, LogQuery query) override;
    Awaitable<Result<Inspection>> inspect(std::string id) override;
    Awaitable<void> stop() override;

  private:
    class Operation;

    /// What a create was asked for and has made so far. Its steps borrow it.
    struct Creation {
        SandboxSpec spec;
        ImageInfo image;
        ContainerPlan plan;
        VolumePlan volumes;
        HostPorts::Reservation ports;  ///< agent, http[, egress]
    };

    // create.cpp
    Awaitable<Result<Endpoints>> make(Creation& creation);
    Status check_policy(const SandboxSpec& spec) const;
    Awaitable<Status> check_network();
    Awaitable<Result<ImageInfo>> provide_image(Creation& creation);
    Awaitable<Status> make_container(Creation& creation);
    Awaitable<Status> try_container(Creation& creation);
    Awaitable<Status> take_ports(Creation& creation, std::size_t count);
    Awaitable<Result<Endpoints>> greet(Creation& creation);
    Awaitable<Status> explain_end(std::string id);
    Awaitable<void> undo(Creation& creation, Error why);

    // sidecar.cpp
    Awaitable<Status> start_sidecar(Creation& creation);
    Awaitable<Result<std::string>> run_sidecar(Creation& creation, SidecarPlan sidecar);
    Awaitable<Status> await_sidecar(std::string id, SidecarPlan sidecar);
    Awaitable<std::string> why_sidecar_ended(std::string id);
    Awaitable<void> cut_off(std::string id);
    Awaitable<Result<bool>> is_guarded(std::string id, std::string container);

    // snapshot.cpp
    Awaitable<Result<std::string>> egress_of(std::string id, StringMap labels);
    Status inherit_policy(const ImageInfo& image, SandboxSpec& spec) const;

    // destroy.cpp
    Awaitable<Status> remove_objects(std::string id, Known known);
    Awaitable<Result<Known>> find_objects(std::string id);
    void leave_remains(const std::string& id, Known known);
    Awaitable<void> clear_remains();

    // watch.cpp
    Awaitable<Result<std::unique_ptr<EventStream>>> open_watch();
    Awaitable<void> watch(std::unique_ptr<EventStream> stream);
    void handle(const EngineEvent& event);
    void handle_sidecar(const std::string& id, const EngineEvent& event);
    Awaitable<void> look_at(std::string id);
    void note(const std::string& id, const ContainerInfo& info);
    Awaitable<void> reconcile();

    [[nodiscard]] Known* known(const std::string& id);
    [[nodiscard]] std::string container_of(const std::string& id) const;
    [[nodiscard]] std::string proxy_host() const;
    [[nodiscard]] Endpoints endpoints(std::uint16_t agent_port, std::uint16_t http_port,
                                      std::string internal_host) const;
    /// Of a sandbox behind a sidecar: its own network is entered by published ports only, and the
    /// sidecar without passing through the sandbox, which must not see what it is told.
    static void guard(Endpoints& endpoints, const std::string& token, std::uint16_t port);
    /// The address inside the sandbox's own network; empty when it is not told or has none.
    [[nodiscard]] std::string internal_host(const std::vector<NetworkEndpoint>& networks,
                                            const std::string& fallback) const;
    // recover.cpp
    Awaitable<Result<std::optional<Observed>>> observe(ContainerSummary container);
    Awaitable<void> remove_stray_sidecars();

    void spawn(Awaitable<void> task, std::string_view name);
    /// Under the contract's code, as a failure of the server (500).
    [[nodiscard]] static Error not_found(const std::string& id);
    [[nodiscard]] static Error failure(std::string_view code, const std::string& message);

    asio::any_io_executor executor_;
    asio::thread_pool& blocking_;
    DockerOptions options_;
    Engine engine_;
    AgentVolume agent_;
    SidecarImage sidecar_image_;
    BucketMounts buckets_;
    HostPorts ports_;
    http::Client probes_;
    std::string server_id_;
    EngineVersion version_;
    std::map<std::string, Known, std::less<>> known_;
    std::map<std::string, Remains, std::less<>> remains_;
    bool clearing_ = false;
    EventStream* stream_ = nullptr;
    bool stopping_ = false;
    std::function<void(const std::string&, const Exit&)> on_exit_;
    std::function<void(const std::string&, Change)> on_change_;
};

/// How a container ended, from what the engine says.
Exit exit_of(const ContainerState& state);
/// How a sandbox ended that lost its sidecar.
Exit exit_without_sidecar(Timestamp at);

}  // namespace opensandbox::runtime::docker
