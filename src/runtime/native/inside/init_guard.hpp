#pragma once

#include "base/error.hpp"

namespace opensandbox::runtime::native {

/// From here on no process begun here can signal process 1 by its number, as a kernel that knows of
/// namespaces forbids by itself and gVisor's does not: a filter of system calls refuses it (EPERM).
/// no_new_privs is set.
Status guard_first_process();

}  // namespace opensandbox::runtime::native
