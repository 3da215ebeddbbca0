#pragma once

#include <optional>

namespace opensandbox::test {

/// Plays the roles of the executable in which what is tested starts its own executable anew; empty
/// when these arguments name none. Defined for the folders that need it only.
[[gnu::weak]] std::optional<int> play_role(int argc, char** argv);

}  // namespace opensandbox::test
