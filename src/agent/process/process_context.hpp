#pragma once

#include "agent/process/environment.hpp"
#include "agent/process/process_user.hpp"
#include "agent/process/reaper.hpp"

#include <boost/asio/any_io_executor.hpp>

namespace opensandbox::agent {

/// What every part of one agent starts processes with. Borrowed: whoever has it ends before the
/// agent does.
struct ProcessContext {
    boost::asio::any_io_executor executor;
    Reaper& reaper;
    const Environment& environment;  ///< of the entrypoint, before files and requests add to it
    ProcessUser user;
    const bool& stopping;  ///< the agent ends: nothing new is started
};

}  // namespace opensandbox::agent
