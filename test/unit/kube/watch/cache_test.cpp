#include "kube/watch/cache.hpp"

#include "support/catch_result.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::kube;

namespace {

struct Thing {
    Metadata metadata;
};

Result<Thing> read_thing(const json::object& object) {
    auto metadata = read_metadata(object);
    if (!metadata) return metadata.error();
    return Thing{std::move(*metadata)};
}

json::object thing(const std::string& version, const std::string& uid = "u1") {
    return {{"metadata",
             json::object{
                 {"name", "a"}, {"namespace", "n"}, {"uid", uid}, {"resourceVersion", version}}}};
}

struct Filled {
    Filled() {
        cache.begin_listing();
        cache.put(thing("10"));
        cache.end_listing("10");
    }
    [[nodiscard]] std::string version() const {
        const auto found = cache.find({"n", "a"});
        return found ? found->metadata.resource_version : "none";
    }
    Cache<Thing> cache{"things", read_thing};
};

}  // namespace

TEST_CASE("the later state of an object stays, whoever tells it") {
    Filled filled;
    REQUIRE(filled.cache.store(thing("12")));
    CHECK(filled.version() == "12");
    filled.cache.put(thing("11"));
    CHECK(filled.version() == "12");
    filled.cache.put(thing("13"));
    CHECK(filled.version() == "13");
    REQUIRE(filled.cache.store(thing("9")));
    CHECK(filled.version() == "13");
}

TEST_CASE("the end of one object is not that of another of its name") {
    Filled filled;
    REQUIRE(filled.cache.store(thing("12", "u2")));
    filled.cache.remove(thing("11", "u1"));
    CHECK(filled.version() == "12");
    filled.cache.remove(thing("13", "u2"));
    CHECK(filled.version() == "none");
}

TEST_CASE("an answer that comes behind the object's end does not bring it back") {
    Filled filled;
    filled.cache.remove(thing("12"));
    filled.cache.reached("12");
    auto answer = filled.cache.store(thing("11"));
    REQUIRE(answer);
    CHECK((*answer)->metadata.resource_version == "11");
    CHECK(filled.version() == "none");
    REQUIRE(filled.cache.store(thing("13", "u2")));
    CHECK(filled.version() == "13");
}

TEST_CASE("a listing ends what it does not name, but for what was made since") {
    Filled filled;
    filled.cache.begin_listing();
    filled.cache.end_listing("20");
    CHECK(filled.version() == "none");
    REQUIRE(filled.cache.store(thing("25")));
    filled.cache.begin_listing();
    filled.cache.end_listing("22");
    CHECK(filled.version() == "25");
}

TEST_CASE("an answer that is no such object is an error and changes nothing") {
    Filled filled;
    CHECK_FALSE(filled.cache.store(json::object()));
    CHECK(filled.version() == "10");
}
