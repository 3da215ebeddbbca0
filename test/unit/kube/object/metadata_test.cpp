#include "kube/object/metadata.hpp"

#include "support/catch_result.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::kube;

namespace {

json::object object_of(std::string_view text) {
    return json::parse(text)->get_object();
}

}  // namespace

TEST_CASE("metadata is read, and what is not there is empty") {
    auto read = read_metadata(object_of(R"({"metadata":{"name":"a","namespace":"n","uid":"u",
        "resourceVersion":"7","generation":3,"creationTimestamp":"2026-01-02T03:04:05Z",
        "deletionTimestamp":"2026-01-02T03:04:06Z","labels":{"x":"y"},"annotations":{"p/q":"r"},
        "finalizers":["f"],"ownerReferences":[{"apiVersion":"v1","kind":"K","name":"o","uid":"ou"},
        {"apiVersion":"v1","kind":"C","name":"c","uid":"cu","controller":true}]}})"));
    REQUIRE(read);
    CHECK(read->name == "a");
    CHECK(read->generation == 3);
    CHECK(read->labels.at("x") == "y");
    CHECK(read->annotations.at("p/q") == "r");
    CHECK(read->finalizers == std::vector<std::string>{"f"});
    CHECK(to_rfc3339(*read->deletion_time) == "2026-01-02T03:04:06Z");
    REQUIRE(controller_of(*read));
    CHECK(controller_of(*read)->kind == "C");
    auto empty = read_metadata(object_of(R"({"metadata":{"labels":null}})"));
    REQUIRE(empty);
    CHECK(empty->name.empty());
    CHECK_FALSE(empty->deletion_time);
    CHECK(controller_of(*empty) == nullptr);
}

TEST_CASE("what is wrong in metadata is named") {
    CHECK(read_metadata({}).error().message() == "metadata: is missing");
    CHECK(read_metadata(object_of(R"({"metadata":7})")).error().message() ==
          "metadata: must be an object");
    CHECK(read_metadata(object_of(R"({"metadata":{"name":7}})"))
              .error()
              .message()
              .find("metadata: name") == 0);
    CHECK_FALSE(read_metadata(object_of(R"({"metadata":{"ownerReferences":[{}]}})")));
}

TEST_CASE("an owner is written as it is read") {
    const Owner owner{"v1", "Pool", "p", "u", true, true};
    json::object written = write_owner(owner);
    json::array owners;
    owners.push_back(std::move(written));
    auto read = read_metadata({{"metadata", json::object{{"ownerReferences", std::move(owners)}}}});
    REQUIRE(read);
    CHECK(read->owners.at(0) == owner);
}

TEST_CASE("versions are numbers of any length") {
    CHECK(is_newer("10", "9"));
    CHECK_FALSE(is_newer("9", "10"));
    CHECK_FALSE(is_newer("7", "7"));
    CHECK_FALSE(is_newer("007", "7"));
    CHECK(is_newer("100000000000000000000000", "99999999999999999999999"));
    CHECK(is_newer("1", ""));
    CHECK(is_newer("x", "7"));
}
