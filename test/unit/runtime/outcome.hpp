#pragma once

#include <catch2/catch.hpp>

namespace opensandbox::runtime::test {

/// Whether a Result or Status holds success; says why not in the test's output.
template <class R>
bool succeeded(const R& result) {
    if (!result.has_value()) UNSCOPED_INFO(result.error().message());
    return result.has_value();
}

}  // namespace opensandbox::runtime::test
