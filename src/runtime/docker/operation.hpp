#pragma once

#include "runtime/docker/core.hpp"

#include <string>
#include <utility>

namespace opensandbox::runtime::docker {

/// While it lives, events of this sandbox are taken as ours; afterwards what came meanwhile is
/// looked at.
class DockerRuntime::Operation {
  public:
    Operation(DockerRuntime& runtime, std::string id) : runtime_(runtime), id_(std::move(id)) {
        if (Known* entry = runtime_.known(id_)) ++entry->operations;
    }
    Operation(const Operation&) = delete;
    Operation& operator=(const Operation&) = delete;
    ~Operation() {
        Known* entry = runtime_.known(id_);
        if (!entry || entry->operations == 0) return;
        --entry->operations;
        if (entry->operations > 0) return;
        if (entry->missed_events) runtime_.spawn(runtime_.look_at(id_), "look at a container");
        entry->missed_events = false;
    }
    void now_in(Known::State state) {
        if (Known* entry = runtime_.known(id_)) entry->state = state;
    }

  private:
    DockerRuntime& runtime_;
    std::string id_;
};

inline bool is_gone(const Error& error) {
    return error.code() == ErrorCode::not_found;
}

}  // namespace opensandbox::runtime::docker
