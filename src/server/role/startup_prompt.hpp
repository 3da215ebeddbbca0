#pragma once

#include <chrono>

namespace opensandbox::server {

/// Asks a person on a terminal whether the server may start without any key (lifecycle 7.4); true
/// when the line `YES` comes in time. False at once when `in` is no terminal.
bool confirm_insecure_start(int in, int out, std::chrono::milliseconds patience);

}  // namespace opensandbox::server
