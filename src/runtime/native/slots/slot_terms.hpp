#pragma once

#include "runtime/native/host/host.hpp"

namespace opensandbox::runtime::native {

/// What the process of a slot has to know of its host.
SlotTerms slot_terms(const Host& host, SlotId slot);

}  // namespace opensandbox::runtime::native
