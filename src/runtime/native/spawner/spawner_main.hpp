#pragma once

namespace opensandbox::runtime::native {

/// The hidden role `spawner`: parent of all sandboxes, started by the runtime, outlives it.
int spawner_main(int argc, char** argv);

}  // namespace opensandbox::runtime::native
