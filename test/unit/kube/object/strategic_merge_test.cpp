#include "kube/object/strategic_merge.hpp"

#include "kube/object/merge_patch.hpp"
#include "support/catch_result.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::kube;

namespace {

json::value document(std::string_view text) {
    auto parsed = json::parse(text);
    REQUIRE(parsed);
    return *parsed;
}

json::value merged(std::string_view target, std::string_view patch,
                   PatchSchema schema = PatchSchema::pod) {
    auto made = strategic_merge(document(target).get_object(), document(patch), schema);
    REQUIRE(made);
    return *made;
}

std::string refusal(std::string_view patch, std::string_view target = "{}") {
    auto made = strategic_merge(document(target).get_object(), document(patch), PatchSchema::pod);
    REQUIRE_FALSE(made);
    return made.error().message();
}

}  // namespace

TEST_CASE("members are merged, null deletes, other lists are replaced") {
    CHECK(merged(R"({"metadata":{"labels":{"a":"1","b":"2"}},"spec":{"nodeName":"n",
                  "tolerations":[{"key":"x"},{"key":"y"}]}})",
                 R"({"metadata":{"labels":{"b":null,"c":"3"}},"spec":{"nodeName":"m",
                  "tolerations":[{"key":"z"}]}})") ==
          document(R"({"metadata":{"labels":{"a":"1","c":"3"}},"spec":{"nodeName":"m",
                  "tolerations":[{"key":"z"}]}})"));
    CHECK(merged(R"({"a":{"b":1}})", R"({"a":[1]})") == document(R"({"a":[1]})"));
    CHECK(merged(R"({"a":1})", R"({"a":{"b":null,"c":2}})") == document(R"({"a":{"c":2}})"));
    CHECK(merged(R"({"a":1})", R"({"b":null})") == document(R"({"a":1})"));
}

TEST_CASE("containers are merged by their names, and what is in them by its key") {
    CHECK(merged(R"({"spec":{"containers":[
                    {"name":"a","image":"i","env":[{"name":"X","value":"1"},{"name":"Y","value":"2"}]},
                    {"name":"b","image":"j"}]}})",
                 R"({"spec":{"containers":[{"name":"a","env":[{"name":"Y","value":"3"}],
                    "ports":[{"containerPort":80}]}]}})") == document(R"({"spec":{"containers":[
                    {"name":"a","image":"i","env":[{"name":"X","value":"1"},{"name":"Y","value":"3"}],
                     "ports":[{"containerPort":80}]},
                    {"name":"b","image":"j"}]}})"));
    // A number and a text that looks like it are not one key.
    CHECK(merged(
              R"({"spec":{"containers":[{"name":"a","ports":[{"containerPort":80,"name":"p"}]}]}})",
              R"({"spec":{"containers":[{"name":"a","ports":[{"containerPort":"80"}]}]}})")
              .at("spec")
              .at("containers")
              .at(0)
              .at("ports")
              .as_array()
              .size() == 2);
}

TEST_CASE("a new element comes where the patch names it") {
    CHECK(merged(R"({"spec":{"containers":[{"name":"a"},{"name":"b"}]}})",
                 R"({"spec":{"containers":[{"name":"c"}]}})") ==
          document(R"({"spec":{"containers":[{"name":"c"},{"name":"a"},{"name":"b"}]}})"));
    CHECK(merged(R"({"spec":{"containers":[{"name":"a"},{"name":"b"}]}})",
                 R"({"spec":{"$setElementOrder/containers":[{"name":"b"},{"name":"c"},{"name":"a"}],
                    "containers":[{"name":"c"}]}})") ==
          document(R"({"spec":{"containers":[{"name":"b"},{"name":"c"},{"name":"a"}]}})"));
    CHECK(merged(R"({"spec":{"containers":[{"name":"a"},{"name":"b"}]}})",
                 R"({"spec":{"$setElementOrder/containers":[{"name":"b"},{"name":"a"}]}})") ==
          document(R"({"spec":{"containers":[{"name":"b"},{"name":"a"}]}})"));
}

TEST_CASE("directives delete, replace and retain") {
    CHECK(merged(R"({"spec":{"containers":[{"name":"a"},{"name":"b"}]}})",
                 R"({"spec":{"containers":[{"name":"a","$patch":"delete"}]}})") ==
          document(R"({"spec":{"containers":[{"name":"b"}]}})"));
    CHECK(merged(R"({"spec":{"containers":[{"name":"a"},{"name":"b"}]}})",
                 R"({"spec":{"containers":[{"$patch":"replace"},{"name":"c"}]}})") ==
          document(R"({"spec":{"containers":[{"name":"c"}]}})"));
    CHECK(merged(R"({"spec":{"nodeName":"n","hostname":"h"}})",
                 R"({"spec":{"$patch":"replace","hostname":"k"}})") ==
          document(R"({"spec":{"hostname":"k"}})"));
    CHECK(merged(R"({"spec":{"volumes":[{"name":"v","emptyDir":{}}]}})",
                 R"({"spec":{"volumes":[{"name":"v","$retainKeys":["name","hostPath"],
                    "hostPath":{"path":"/p"}}]}})") ==
          document(R"({"spec":{"volumes":[{"name":"v","hostPath":{"path":"/p"}}]}})"));
    CHECK(merged(R"({"metadata":{"finalizers":["a","b","c"]}})",
                 R"({"metadata":{"$deleteFromPrimitiveList/finalizers":["b"],
                    "finalizers":["d"]}})") ==
          document(R"({"metadata":{"finalizers":["d","a","c"]}})"));
}

TEST_CASE("directives leave nothing behind where nothing was") {
    CHECK(merged("{}", R"({"spec":{"containers":[{"name":"a","$patch":"delete"},{"name":"b",
                    "env":[{"name":"X","$patch":"delete"}]}],"volumes":null}})") ==
          document(R"({"spec":{"containers":[{"name":"b","env":[]}]}})"));
    CHECK(merged("{}", R"({"spec":{"$patch":"delete"}})") == document("{}"));
}

TEST_CASE("a task is merged by its own members") {
    CHECK(merged(
              R"({"spec":{"process":{"command":["a"],"args":["x"],"env":[{"name":"A","value":"1"}]},
                    "timeoutSeconds":5}})",
              R"({"spec":{"process":{"args":["y","z"],"env":[{"name":"A","value":"2"}]}}})",
              PatchSchema::task) ==
          document(R"({"spec":{"process":{"command":["a"],"args":["y","z"],
                    "env":[{"name":"A","value":"2"}]},"timeoutSeconds":5}})"));
    // Nothing is known of others: a list stands for the one before it.
    CHECK(merged(R"({"spec":{"containers":[{"name":"a"},{"name":"b"}]}})",
                 R"({"spec":{"containers":[{"name":"c"}]}})",
                 PatchSchema::none) == document(R"({"spec":{"containers":[{"name":"c"}]}})"));
}

TEST_CASE("what a patch cannot say is named with its place") {
    CHECK(refusal("[]") == "must be an object");
    CHECK(refusal(R"({"$gone":1})") == "$gone: is no directive of a strategic merge patch");
    CHECK(refusal(R"({"spec":{"$patch":"drop"}})") ==
          "spec: $patch: must be merge, replace or delete");
    CHECK(refusal(R"({"spec":{"containers":[{"image":"i"}]}})") ==
          "spec: containers[0]: name: is missing; the list is merged by it");
    CHECK(refusal(R"({"spec":{"containers":[{"name":"a"},7]}})") ==
          "spec: containers[1]: must be an object");
    CHECK(refusal(R"({"spec":{"$setElementOrder/tolerations":[]}})", R"({"spec":{}})") ==
          "spec: $setElementOrder/tolerations: tolerations is no merged list");
    CHECK(refusal(R"({"spec":{"$setElementOrder/containers":[{"name":"a"}],
                     "containers":[{"name":"b"}]}})",
                  R"({"spec":{}})") ==
          "spec: $setElementOrder/containers: must name all of containers in their order");
    CHECK(refusal(R"({"spec":{"$retainKeys":["a"],"b":1}})", R"({"spec":{}})") ==
          "spec: $retainKeys: must name b");
}

TEST_CASE("a merge patch is made and applied") {
    const json::value from = document(R"({"a":{"b":1,"c":[1,2]},"d":"x","e":null})");
    const json::value to = document(R"({"a":{"b":2,"c":[1]},"f":{"g":1}})");
    const json::value patch = make_merge_patch(from, to);
    CHECK(patch == document(R"({"a":{"b":2,"c":[1]},"d":null,"e":null,"f":{"g":1}})"));
    json::value changed = from;
    apply_merge_patch(changed, patch);
    CHECK(changed == to);
    CHECK(make_merge_patch(to, to) == document("{}"));
    // RFC 7396, appendix A: an object stands for what is none, without its nulls.
    json::value text = document(R"({"a":"b"})");
    apply_merge_patch(text, document(R"({"a":{"b":"w","c":null}})"));
    CHECK(text == document(R"({"a":{"b":"w"}})"));
}
