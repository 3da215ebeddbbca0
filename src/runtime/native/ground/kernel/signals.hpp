#pragma once

#include <initializer_list>

namespace opensandbox::runtime::native {

/// In a process just forked: every signal does what it does by default, or nothing if it is among
/// `ignored`, and none is blocked. Does not allocate.
void reset_signals(std::initializer_list<int> ignored = {});

}  // namespace opensandbox::runtime::native
