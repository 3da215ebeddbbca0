#pragma once

#include "base/clock.hpp"
#include "model/json_text.hpp"
#include "model/resource_limits.hpp"
#include "runtime/usage.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace opensandbox::runtime {

/// One published port: "44772/tcp" -> "127.0.0.1:40123".
struct PublishedPort {
    std::string inside;
    std::string outside;
};

/// What a backend knows of a sandbox, for diagnostics (lifecycle 5). Empty members are not shown.
struct Inspection {
    std::string object_id;  ///< container id; the sandbox's id where there is none
    std::string name;
    std::string image;
    std::string status;  ///< the backend's own word: running, exited…
    bool running = false;
    bool paused = false;
    bool oom_killed = false;
    std::optional<int> exit_code;
    std::string error;
    std::optional<Timestamp> created_at;
    std::optional<Timestamp> started_at;
    std::optional<Timestamp> finished_at;
    model::ResourceLimits limits;  ///< 0: none that the backend knows
    Usage usage;
    std::string network_mode;
    model::StringMap addresses;  ///< network -> address
    std::vector<PublishedPort> ports;
    model::StringMap labels;       ///< secrets already blanked
    model::StringMap environment;  ///< as given; who shows it blanks secrets
    std::string health;            ///< healthy, unhealthy, starting; empty without a check
    std::vector<std::string> health_log;
};

}  // namespace opensandbox::runtime
