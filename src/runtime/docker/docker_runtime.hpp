#pragma once

#include "runtime/docker/docker_options.hpp"
#include "runtime/runtime.hpp"

#include <boost/asio/thread_pool.hpp>

#include <memory>

namespace opensandbox::runtime::docker {

/// Sandboxes as containers of the Docker engine that DOCKER_HOST and its companions name (lifecycle
/// 6). Blocking parts run on `blocking`. `DOCKER::INITIALIZATION_ERROR` when the environment names
/// no engine; whether one answers is asked by start().
Result<std::unique_ptr<Runtime>> make_docker_runtime(asio::any_io_executor executor,
                                                     asio::thread_pool& blocking,
                                                     DockerOptions options);

}  // namespace opensandbox::runtime::docker
