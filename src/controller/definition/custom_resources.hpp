#pragma once

#include "json/document.hpp"

/// The custom resources of the contract (kubernetes 1), each as the CustomResourceDefinition that
/// makes an API server serve it. Every copy that is shipped is made of these.
namespace opensandbox::controller {

/// BatchSandbox, Pool, SandboxSnapshot. Beyond the published ones: a scale subresource, and rules
/// against changes that would end running sandboxes. They take every manifest that those take.
json::array custom_resources();

}  // namespace opensandbox::controller
