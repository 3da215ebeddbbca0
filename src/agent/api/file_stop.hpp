#pragma once

#include "agent/api/file_routes.hpp"
#include "http/client_stop.hpp"

namespace opensandbox::agent {

/// Ends the work of one request on files when its client is gone, or the agent stops.
class FileStop {
  public:
    explicit FileStop(const FileCall& call)
        : client_(call.exchange),
          finish_(call.services.files, [this] { client_.request_stop(); }) {}

    [[nodiscard]] std::stop_token token() const { return client_.token(); }

  private:
    http::ClientStop client_;
    FilePool::FinishHook finish_;
};

}  // namespace opensandbox::agent
