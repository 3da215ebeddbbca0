#pragma once

#include "agent/code/jupyter/server.hpp"
#include "agent/code/kernel.hpp"
#include "http/client.hpp"

#include <memory>
#include <string>

namespace opensandbox::agent {

/// Kernels of the Jupyter server at `host_url` (execd contract 5.2). Contexts are its sessions; the
/// ids are the same. Every call fails with `invalid_argument` when the URL is none. `client` must
/// outlive the provider and its kernels.
std::unique_ptr<KernelProvider> make_jupyter_provider(asio::any_io_executor executor,
                                                      http::Client& client,
                                                      const std::string& host_url,
                                                      std::string token,
                                                      jupyter::Limits limits = {});

}  // namespace opensandbox::agent
