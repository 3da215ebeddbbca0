#pragma once

#include "opensandbox/commands.hpp"
#include "opensandbox/error.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <memory>
#include <string>

namespace opensandbox::sdk {

/// One run in a shell that keeps its directory and exported variables from run to run.
struct SessionRequest {
    std::string command;                   ///< text for the shell; not empty
    std::string working_directory;         ///< for this run only, must exist; empty: where it is
    std::chrono::milliseconds timeout{0};  ///< ended after it; 0: no limit of ours
};

/// The lasting shells of one sandbox. Cheap to copy. From Sandbox::sessions().
class Sessions {
  public:
    /// Makes one; returns its id. The directory is made when it is not there; empty: the agent's.
    boost::asio::awaitable<Result<std::string>> create(std::string working_directory = {}) const;
    /// Runs a command in it and hands out its events. Runs in one session follow each other.
    boost::asio::awaitable<Result<EventStream>> stream(std::string id,
                                                       SessionRequest request) const;
    /// Runs a command to its end. That it failed is no Error: see Execution::exit_code.
    boost::asio::awaitable<Result<Execution>> run(std::string id, SessionRequest request,
                                                  OutputHandlers handlers = {}) const;
    /// Ends what runs in it and forgets it; `not_found` when there is none of that id.
    boost::asio::awaitable<Status> remove(std::string id) const;

  private:
    friend class Sandbox;
    Sessions(std::shared_ptr<Transport> transport, std::shared_ptr<const Route> agent);
    std::shared_ptr<Transport> transport_;
    std::shared_ptr<const Route> agent_;
};

}  // namespace opensandbox::sdk
