#pragma once

#include "base/clock.hpp"
#include "base/error.hpp"
#include "http/message.hpp"
#include "json/document.hpp"
#include "net/stream.hpp"
#include "runtime/docker/engine/address.hpp"
#include "runtime/docker/engine/container.hpp"
#include "runtime/docker/engine/engine_info.hpp"
#include "runtime/docker/engine/events.hpp"
#include "runtime/docker/engine/image.hpp"
#include "runtime/docker/engine/volume.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace opensandbox::runtime::docker {

/// Which lines of a container's output to fetch.
struct LogRequest {
    std::string container;
    std::optional<std::uint32_t> tail;  ///< the last lines; empty: all
    std::optional<Timestamp> since;
    bool timestamps = false;  ///< each line begins with an RFC 3339 time and a space
    bool out = true;          ///< standard output
    bool err = true;          ///< standard error
    std::optional<bool> tty;  ///< whether the container has one; empty: asks the engine first
    std::size_t max_bytes = 1024 * 1024;  ///< the newest bytes kept
};

/// Both streams in the order in which the engine recorded them.
struct LogOutput {
    std::string text;
    bool truncated = false;  ///< older bytes were dropped, or reading stopped at its limit
};

struct EngineOptions {
    /// docker.api_timeout: the longest that one call may take, and the longest silence in a pull, a
    /// log, an archive. A stop or wait gets its own waiting time on top.
    std::chrono::milliseconds call_timeout{180'000};
    std::chrono::milliseconds connect_timeout{10'000};
    std::size_t max_document = 32 * 1024 * 1024;  ///< bytes of one JSON answer
    std::size_t max_line = 1024 * 1024;           ///< bytes of one line of a JSON stream
};

/// A client of the Docker Engine API, 1.24 to 1.41, over a Unix socket, TCP or TLS, for Docker and
/// Podman's compatible service. The version is negotiated at the first call and again after the
/// engine was away. Calls may overlap. All run on one event loop; the Engine must outlive them.
///
/// Errors of every call. Their message begins with `the Docker engine at <address>` and holds what
/// the engine said:
/// - `unavailable`: not reachable, too old, or answered 502, 503, 504
/// - `timeout`: call_timeout passed
/// - `bad_gateway`: it broke the connection or answered what no engine does
/// - `cancelled`: the calling coroutine was cancelled
/// - by status: `invalid_argument` 400, `unauthenticated` 401, `permission_denied` 403,
///   `not_found` 404, `conflict` 409, `unsupported` 405 and 501, `resource_exhausted` 429 and
///   "no space left on device", `internal` 500 and any other.
class Engine {
  public:
    explicit Engine(asio::any_io_executor executor, EngineAddress address,
                    EngineOptions options = EngineOptions());
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    [[nodiscard]] const EngineAddress& address() const;

    // The engine itself.

    /// Whether it answers; negotiates the version anew.
    Awaitable<Status> ping();
    Awaitable<Result<EngineVersion>> version();
    Awaitable<Result<EngineInfo>> info();

    // Images.

    /// By reference or id.
    Awaitable<Result<ImageInfo>> inspect_image(std::string image);
    /// Those whose references match one of the patterns ("opensandbox-snapshots").
    Awaitable<Result<std::vector<ImageSummary>>> list_images(std::vector<std::string> references);
    /// Returns when the image is there. Fails with what the engine says in mid-stream: `not_found`
    /// for an unknown image, `unauthenticated` or `permission_denied` for refused credentials where
    /// its words tell, else `bad_gateway`. Cancelling the caller ends the pull.
    Awaitable<Status> pull_image(PullRequest request);
    /// Takes in an archive as `docker save` writes it. Fails with what the engine says in
    /// mid-stream.
    Awaitable<Status> load_image(std::string tar);
    /// Succeeds when it is not there. `conflict` when a container uses it.
    Awaitable<Status> remove_image(std::string image, bool force = false);
    Awaitable<Status> tag_image(std::string image, std::string repository, std::string tag);
    /// Returns the new image's id.
    Awaitable<Result<std::string>> commit(CommitRequest request);

    // Containers.

    /// `body` is the JSON of POST /containers/create. `not_found` when the image is not there,
    /// `conflict` when the name is taken. `platform` is "linux/arm64" or empty (engines before API
    /// 1.41 refuse one: `unsupported`).
    Awaitable<Result<CreatedContainer>> create_container(std::string name, json::object body,
                                                         std::string platform = "");
    /// Succeeds when it runs already. is_port_conflict() tells a taken host port.
    Awaitable<Status> start_container(std::string id);
    /// Succeeds when it does not run. Killed after `grace`.
    Awaitable<Status> stop_container(std::string id, std::chrono::seconds grace);
    /// `conflict` when it does not run.
    Awaitable<Status> kill_container(std::string id, std::string signal = "SIGKILL");
    /// `conflict` when it is paused already or does not run.
    Awaitable<Status> pause_container(std::string id);
    /// `conflict` when it is not paused.
    Awaitable<Status> unpause_container(std::string id);
    /// Succeeds when there is none (any more), also when it is being removed just now: returns when
    /// it is gone. `volumes`: its anonymous volumes, too.
    Awaitable<Status> remove_container(std::string id, bool force, bool volumes);
    /// By id or name.
    Awaitable<Result<ContainerInfo>> inspect_container(std::string id);
    Awaitable<Result<std::vector<ContainerSummary>>> list_containers(ContainerFilter filter);
    /// Waits at most `limit` for its end; the exit code. `timeout` when it still runs.
    Awaitable<Result<std::int64_t>> wait_container(std::string id, std::chrono::milliseconds limit);
    Awaitable<Result<LogOutput>> container_logs(LogRequest request);
    Awaitable<Result<ContainerStats>> container_stats(std::string id);

    /// Unpacks a tar stream (plain or compressed) into a directory that exists in the container,
    /// which need not run.
    Awaitable<Status> upload_archive(std::string id, std::string directory, std::string tar);
    /// The same, sent as it is read; `tar` is borrowed until the call has returned.
    Awaitable<Status> upload_archive(std::string id, std::string directory, http::BodyReader& tar);
    /// Hands the tar stream of a file or directory in the container to `sink` piece by piece; an
    /// error of `sink` ends the call with that error. `too_large` after `limit` bytes.
    Awaitable<Status> download_archive(std::string id, std::string path, std::size_t limit,
                                       std::function<Status(std::string_view)> sink);

    // Volumes and networks.

    Awaitable<Result<VolumeInfo>> inspect_volume(std::string name);
    Awaitable<Result<VolumeInfo>> create_volume(VolumeRequest request);
    /// Succeeds when there is none. `conflict` while a container uses it.
    Awaitable<Status> remove_volume(std::string name, bool force = false);
    /// Those that have every label ("key" or "key=value").
    Awaitable<Result<std::vector<VolumeInfo>>> list_volumes(std::vector<std::string> labels);
    /// By name or id.
    Awaitable<Result<NetworkInfo>> inspect_network(std::string name);

    // Events.

    /// Returns when the engine has accepted the watch: whatever happens after that is seen. The
    /// stream may outlive the Engine.
    Awaitable<Result<std::unique_ptr<EventStream>>> watch_events(EventFilter filter);

  private:
    struct State;
    std::shared_ptr<State> state_;
};

/// Whether a start failed because a host port was taken: another port may do.
bool is_port_conflict(const Error& error);

}  // namespace opensandbox::runtime::docker
