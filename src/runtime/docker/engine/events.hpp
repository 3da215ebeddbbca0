#pragma once

#include "base/clock.hpp"
#include "net/stream.hpp"
#include "runtime/docker/engine/image.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::runtime::docker {

/// One thing that happened at the engine.
struct EngineEvent {
    std::string type;      ///< "container", "image", "volume", "network"
    std::string action;    ///< "start", "die", "oom", "pause", "destroy", "health_status: healthy"
    std::string actor_id;  ///< container id
    StringMap attributes;  ///< name, image, exitCode, and the container's labels
    std::int64_t time_ns = 0;  ///< since the epoch

    [[nodiscard]] std::optional<std::string> attribute(std::string_view key) const;
    /// Of "die"; empty when it is not said.
    [[nodiscard]] std::optional<std::int64_t> exit_code() const;
};

/// Which events to watch: of each list that is not empty one must match; every label must.
struct EventFilter {
    std::vector<std::string> types;
    std::vector<std::string> actions;
    std::vector<std::string> labels;  ///< "key" or "key=value"
    std::int64_t since_ns = 0;        ///< also what happened since then; 0: from now on

    /// Whether the lists allow it; `since_ns` is not looked at.
    [[nodiscard]] bool matches(const EngineEvent& event) const;
};

/// A watch on the engine's events, on a connection of its own. Silence is no failure: it lasts
/// until the engine ends it, an error comes, or it is closed.
class EventStream {
  public:
    virtual ~EventStream() = default;
    /// The next event. `cancelled` after close(); `unavailable` when the engine ended the stream;
    /// `bad_gateway` when it broke or sent garbage. After an error there are no more events: open a
    /// new watch with `since_ns` of the last event (which comes again).
    virtual Awaitable<Result<EngineEvent>> next() = 0;
    /// Ends the watch, as destruction does; a next() in flight returns `cancelled`.
    virtual void close() = 0;
};

}  // namespace opensandbox::runtime::docker
