#pragma once

namespace opensandbox::controller {

/// The `controller` role (kubernetes 2): `controller [flags]`, and `controller manifests [flags]`,
/// which prints what a cluster needs. Returns the exit code.
int main(int argc, char** argv);

}  // namespace opensandbox::controller
