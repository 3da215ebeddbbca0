#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"

#include <span>

/// This executable, started anew in a process that was forked from a server's: what is forked from
/// one process has its memory laid out as that and shares the stack protector's value, so whoever
/// reads one knows them all. What is executed has its own of both.
namespace opensandbox::runtime::native {

/// Opens it for start_anew(). Where strangers may not execute the file, such as root of a user
/// namespace that has no id for its owner, it is a copy in memory.
Result<UniqueFd> open_own_program();

/// Makes `kept` the descriptors 3, 4, … of this process, open across start_anew(), and closes all
/// others but the standard ones; returns the new number of `program`.
Result<int> keep_for_new_program(std::span<const int> kept, int program);

/// Whether a message waits in `socket`; returns when one does or none can come, and leaves it
/// there.
bool await_message(int socket);

/// Starts `program`, of open_own_program(), in a role (src/main.cpp). Returns only why it failed.
Error start_anew(int program, const char* role);

/// In the role: nobody may look at this process, and what keep_for_new_program() made the first
/// `count` descriptors goes to no other program. False when there are not so many.
bool adopt_descriptors(int count);

}  // namespace opensandbox::runtime::native
