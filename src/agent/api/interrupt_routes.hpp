#pragma once

#include "agent/api/services.hpp"
#include "http/router.hpp"

namespace opensandbox::agent {

/// DELETE /command and DELETE /code: one id, whatever it belongs to (execd contract 3.5, 5.4).
/// `services` is borrowed.
void add_interrupt_routes(http::Router& router, Services& services);

}  // namespace opensandbox::agent
