#pragma once

namespace opensandbox::runtime::native {

/// For a process that is about to give up its standard error: in a build with sanitizers their
/// reports still go there. In others it does nothing.
void keep_sanitizer_reports();

}  // namespace opensandbox::runtime::native
