#pragma once

#include "base/error.hpp"

#include <catch2/catch.hpp>

#include <string>

/// Lets assertions on results say the error.
template <class T>
struct Catch::StringMaker<boost::system::result<T, opensandbox::Error>> {
    static std::string convert(const boost::system::result<T, opensandbox::Error>& result) {
        return result ? "a value" : "error: " + result.error().message();
    }
};
