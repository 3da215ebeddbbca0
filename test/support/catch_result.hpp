#pragma once

#include "base/error.hpp"

#include <catch2/catch.hpp>

#include <string>

namespace Catch {

/// Lets assertions take a Result: on failure they show its error.
template <class T>
struct StringMaker<opensandbox::Result<T>> {
    static std::string convert(const opensandbox::Result<T>& result) {
        if (result.has_value()) return "a value";
        const auto& error = result.error();
        return std::string(to_string(error.code())) + " " + error.wire() + ": " + error.message();
    }
};

}  // namespace Catch
