#pragma once

#include "base/error.hpp"

#include <optional>
#include <string_view>

namespace opensandbox::agent {

/// What EXECD_CLONE3_COMPAT asks for (execd contract 1.1): some hosts fail clone3 in a way that C
/// libraries do not expect, while ENOSYS makes them use clone.
enum class Clone3Compat : unsigned char {
    off,
    on,      ///< clone3 answers ENOSYS from here on
    reexec,  ///< the same, and the program is started anew under it
};

/// Empty for a value that means nothing. Pure.
std::optional<Clone3Compat> parse_clone3_compat(std::string_view value);

/// Makes clone3 fail with ENOSYS in every thread of this process and in all that it starts. Nobody
/// among them gains rights by executing a program any more (no_new_privs).
Status deny_clone3();

/// Does what EXECD_CLONE3_COMPAT of the environment says; a program started anew continues at its
/// main(). An Error for an unknown value or when the kernel refuses.
Status apply_clone3_compat(char** argv);

}  // namespace opensandbox::agent
