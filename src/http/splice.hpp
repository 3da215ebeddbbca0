#pragma once

#include "http/exchange.hpp"

#include <memory>

namespace opensandbox::http {

/// Copies bytes between two connections in both directions until both have ended their side; the
/// end of one side is passed on as such. A failure on either closes both. Holds no buffer while
/// nothing flows.
Awaitable<void> splice(Upgraded a, Upgraded b);

}  // namespace opensandbox::http
