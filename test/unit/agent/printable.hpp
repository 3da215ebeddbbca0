#pragma once

#include <catch2/catch.hpp>

#include <string>

#include "base/error.hpp"

/// Lets assertions on results say the error.
template <class T>
struct Catch::StringMaker<boost::system::result<T, opensandbox::Error>> {
    static std::string convert(const boost::system::result<T, opensandbox::Error>& result) {
        return result ? "a value" : "error: " + result.error().message();
    }
};
