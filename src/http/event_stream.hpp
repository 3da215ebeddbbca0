#pragma once

#include "http/exchange.hpp"

namespace opensandbox::http {

/// Fields of a server-sent event stream answer: text/event-stream, no-cache, no proxy buffering.
ResponseHead event_stream_head();

}  // namespace opensandbox::http
