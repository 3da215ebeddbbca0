#include "base/error.hpp"

#include <catch2/catch.hpp>

#include <cerrno>

using namespace opensandbox;

TEST_CASE("an errno becomes the code that callers can act on") {
    CHECK(Error::from_errno(ENOENT, "open").code() == ErrorCode::not_found);
    CHECK(Error::from_errno(EACCES, "open").code() == ErrorCode::permission_denied);
    CHECK(Error::from_errno(EEXIST, "mkdir").code() == ErrorCode::conflict);
    CHECK(Error::from_errno(ENOSPC, "write").code() == ErrorCode::resource_exhausted);
    CHECK(Error::from_errno(EIO, "read").code() == ErrorCode::io);
    CHECK(Error::from_errno(ENOENT, "open x").message() == "open x: No such file or directory");
}

TEST_CASE("context and wire identifiers are added without losing the rest") {
    Error error(ErrorCode::not_found, "no such layer");
    Error wrapped = error.within("image a:b").as("NATIVE::SANDBOX_IMAGE_PULL_FAILED");
    CHECK(wrapped.code() == ErrorCode::not_found);
    CHECK(wrapped.message() == "image a:b: no such layer");
    CHECK(wrapped.wire() == "NATIVE::SANDBOX_IMAGE_PULL_FAILED");
}

TEST_CASE("a result that holds an error throws something readable when its value is asked for") {
    Result<int> result = Error(ErrorCode::timeout, "too slow");
    CHECK_THROWS_WITH(result.value(), "timeout: too slow");
}
