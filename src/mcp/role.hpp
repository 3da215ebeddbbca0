#pragma once

namespace opensandbox::mcp {

/// The role `mcp`: serves agents over standard input and output or HTTP. Returns the exit code: 2
/// for wrong usage, 1 when it cannot start.
int main(int argc, char** argv);

}  // namespace opensandbox::mcp
