#include "controller/definition/custom_resources.hpp"
#include "controller/definition/manifests.hpp"
#include "controller/role/controller_options.hpp"
#include "json/yaml.hpp"
#include "support/catch_result.hpp"

#include <algorithm>

using namespace opensandbox;
using namespace opensandbox::controller;

namespace {

std::string text(const json::value& from, std::string_view pointer) {
    return std::string(from.at_pointer(pointer).as_string());
}

}  // namespace

TEST_CASE("definitions: the three kinds of the contract") {
    const json::array all = custom_resources();
    REQUIRE(all.size() == 3);
    std::vector<std::string> names;
    for (const json::value& definition : all)
        names.push_back(text(definition, "/metadata/name"));
    CHECK(names == std::vector<std::string>{"batchsandboxes.sandbox.opensandbox.io",
                                            "pools.sandbox.opensandbox.io",
                                            "sandboxsnapshots.sandbox.opensandbox.io"});
    const json::value& batch = all[0].at_pointer("/spec/versions/0");
    CHECK(text(batch, "/subresources/scale/specReplicasPath") == ".spec.replicas");
    const json::value& properties = batch.at_pointer("/schema/openAPIV3Schema/properties");
    CHECK(properties.at_pointer("/status/required").as_array().size() == 8);
    CHECK(properties.at_pointer("/spec/properties/template/nullable") == true);
    CHECK(properties.at_pointer("/spec/properties/replicas/default") == 1);
    CHECK_FALSE(
        properties.at_pointer("/spec/properties/taskTemplate").as_object().contains("type"));
}

TEST_CASE("manifests: the YAML says what the objects say") {
    const json::array all = manifests({.image = "registry/x:1"});
    std::string stream = to_yaml(all);
    std::size_t count = 0;
    while (!stream.empty()) {
        REQUIRE(stream.starts_with("---\n"));
        const std::size_t end = std::min(stream.find("\n---\n"), stream.size() - 1);
        auto read = json::parse_yaml(std::string_view(stream).substr(4, end - 3));
        REQUIRE(read);
        REQUIRE(count < all.size());
        CHECK(*read == all[count]);
        ++count;
        stream.erase(0, end + 1);
    }
    CHECK(count == all.size());
}

TEST_CASE("manifests: nothing runs as root, and nothing may do what its code does not") {
    for (const json::value& made : manifests({})) {
        const std::string kind = text(made, "/kind");
        if (kind == "Deployment") {
            const json::value& pod = made.at_pointer("/spec/template/spec");
            CHECK(pod.at_pointer("/securityContext/runAsNonRoot") == true);
            CHECK(text(pod, "/securityContext/seccompProfile/type") == "RuntimeDefault");
            const json::value& context = pod.at_pointer("/containers/0/securityContext");
            CHECK(context.at_pointer("/readOnlyRootFilesystem") == true);
            CHECK(context.at_pointer("/allowPrivilegeEscalation") == false);
        }
        if (kind != "ClusterRole" && kind != "Role") continue;
        for (const json::value& rule : made.at("rules").as_array()) {
            for (const char* list : {"apiGroups", "resources", "verbs"}) {
                const json::array& words = rule.at(list).as_array();
                CHECK(std::ranges::none_of(
                    words, [](const json::value& word) { return word.as_string() == "*"; }));
            }
        }
    }
    CHECK(manifests({.definitions_only = true}).size() == 3);
}

TEST_CASE("controller options: flags of the published controller are understood") {
    auto read = parse_controller_options(
        {"--leader-elect", "-health-probe-bind-address=:9", "--kube-client-qps=7",
         "--concurrency=batchsandbox=5;pool=9", "--metrics-secure=false", "--zap-log-level=debug",
         "--snapshot-registry", "registry.example"});
    REQUIRE(read);
    CHECK(read->leader_elect);
    CHECK(read->probe_address == ":9");
    CHECK(read->client_qps == 7);
    CHECK(read->workers == 5);
    CHECK(read->ignored == std::vector<std::string>{"-metrics-secure", "-snapshot-registry"});
    CHECK_FALSE(parse_controller_options({"--leader-elect=false"})->leader_elect);
}

TEST_CASE("controller options: what is wrong is named") {
    const auto refusal = [](std::vector<std::string> words) {
        auto read = parse_controller_options(words);
        return read ? std::string() : read.error().message();
    };
    CHECK(refusal({"--nonsense"}).find("--nonsense") != std::string::npos);
    CHECK(refusal({"--concurrency=many"}).find("concurrency") != std::string::npos);
    CHECK(refusal({"--health-probe-bind-address=8081"}).find("probe-bind") != std::string::npos);
    CHECK(refusal({"--kube-client-qps=-1"}).find("kube-client-qps") != std::string::npos);
    CHECK(refusal({"word"}).find("word") != std::string::npos);
    CHECK(refusal({"--kubeconfig"}).find("kubeconfig") != std::string::npos);
    CHECK(parse_probe_address("[::1]:80")->host == "::1");
    CHECK(parse_probe_address(":80")->port == 80);
    CHECK_FALSE(parse_probe_address("host"));
}
