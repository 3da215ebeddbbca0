#include "imagebuild/cache_key.hpp"

#include "support/catch_result.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox::imagebuild;

TEST_CASE("a key follows every part and where parts end") {
    const std::string key = CacheKey().add("a").add("b").digest();
    CHECK(key.size() == 64);
    CHECK(key == CacheKey().add("a").add("b").digest());
    CHECK(key != CacheKey().add("ab").digest());
    CHECK(key != CacheKey().add("b").add("a").digest());
    CHECK(key != CacheKey().add("a").add("b").add("").digest());
}

TEST_CASE("images of steps are told from others by their name") {
    const std::string reference = cache_reference(CacheKey().add("a").digest());
    CHECK(reference.starts_with("build-cache/"));
    CHECK(reference.ends_with(":latest"));
    CHECK(is_cache_reference(reference));
    CHECK_FALSE(is_cache_reference("my/build-cache:1"));
}
