#include "egress/policy/policy_status.hpp"
#include "unit/egress/policy/policies.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox::egress;
using opensandbox::ErrorCode;

namespace {

std::string refusal(std::string_view text) {
    INFO(text);
    const auto parsed = parse_policy(text);
    REQUIRE_FALSE(parsed.has_value());
    CHECK(parsed.error().code() == ErrorCode::invalid_argument);
    return parsed.error().message();
}

std::string patch_refusal(std::string_view text) {
    INFO(text);
    const auto parsed = parse_patch(text);
    REQUIRE_FALSE(parsed.has_value());
    return parsed.error().message();
}

std::string delete_refusal(std::string_view text) {
    const auto parsed = parse_delete(text);
    REQUIRE_FALSE(parsed.has_value());
    return parsed.error().message();
}

}  // namespace

TEST_CASE("no body, an empty object and null deny everything") {
    for (const char* text : {"", " \n", "{}", " { } ", "null", "\tnull\n"}) {
        INFO(text);
        CHECK(is_reset(text));
        const auto parsed = parse_policy(text);
        REQUIRE(parsed.has_value());
        CHECK(parsed->default_action == Action::deny);
        CHECK(parsed->rules.empty());
    }
    CHECK_FALSE(is_reset("{\"egress\":[]}"));
    CHECK_FALSE(is_reset("{"));
    CHECK_FALSE(is_reset("}"));
}

TEST_CASE("a policy is read as the contract says") {
    const auto parsed = parse_policy(R"({"defaultAction":" ALLOW ","egress":[
        {"action":"Allow","target":"Api.example.com."},{"target":"10.1.2.3/8"},
        {"action":null,"target":"*.example.com"},{"action":"","target":"1.2.3.4"}]})");
    REQUIRE(parsed.has_value());
    CHECK(parsed->default_action == Action::allow);
    CHECK(test::texts(parsed->rules) ==
          "allow Api.example.com, deny 10.1.2.3/8, deny *.example.com, deny 1.2.3.4");
    CHECK(parse_policy(R"({"egress":null})").value().rules.empty());
}

TEST_CASE("a bad policy is refused with the place and the rule") {
    CHECK(refusal(R"({"defaultAction":"log"})") == "defaultAction: unsupported action \"log\"");
    CHECK(refusal(R"({"defaultAction":1})") == "defaultAction: must be a string");
    CHECK(refusal(R"({"egress":{}})") == "egress: must be an array");
    CHECK(refusal(R"({"egress":["a.example"]})") == "egress[0]: must be an object");
    CHECK(
        refusal(R"({"egress":[{"target":"a.example"},{"action":"drop","target":"b.example"}]})") ==
        "egress[1].action: unsupported action \"drop\"");
    CHECK(refusal(R"({"egress":[{"action":true,"target":"b.example"}]})") ==
          "egress[0].action: must be a string");
    CHECK(refusal(R"({"egress":[{"action":"allow"}]})") ==
          "egress[0].target: egress target cannot be empty");
    CHECK(refusal(R"({"egress":[{"target":7}]})") == "egress[0].target: must be a string");
    CHECK_THAT(refusal(R"({"egress":[{"target":"http://a.example"}]})"),
               Catch::StartsWith("egress[0].target: ") && Catch::Contains("URL"));
    CHECK_THAT(refusal("{\"egress\":["), Catch::StartsWith("JSON: "));
    CHECK_THAT(refusal("[]"), Catch::Contains("must be an object"));
    CHECK_THAT(refusal("{} x"), Catch::Contains("extra data"));
    CHECK_THAT(refusal(std::string(2000, '[')), Catch::StartsWith("JSON: "));
    CHECK_THAT(refusal(std::string(kMaxPolicyBytes + 1, 'x')), Catch::Contains("16 MiB"));
}

TEST_CASE("no member of a policy or a rule is passed over") {
    CHECK(refusal(R"({"other":1})") == "unknown member \"other\"");
    CHECK(refusal(R"({"default_action":"allow"})") == "unknown member \"default_action\"");
    CHECK(refusal(R"({"ingress":[],"egress":[]})") == "unknown member \"ingress\"");
    CHECK(refusal(R"({"egress":[{"action":"allow","target":"a.example","methods":["GET"]}]})") ==
          "egress[0]: unknown member \"methods\"");
    CHECK(patch_refusal(R"([{"action":"allow","target":"a.example","port":443}])") ==
          "invalid patch rules: egress[0]: unknown member \"port\"");
}

TEST_CASE("rules may be limited to ports") {
    const auto read = [](std::string_view rule) {
        return test::texts(test::written("{\"egress\":[" + std::string(rule) + "]}").rules);
    };
    CHECK(read(R"({"action":"allow","target":"10.0.0.0/8","ports":[443,80,443]})") ==
          "allow 10.0.0.0/8 ports=80,443");
    CHECK(read(R"({"action":"deny","ports":[65535,1]})") == "deny ports=1,65535");
    CHECK(read(R"({"action":"allow","target":"fd00::/8","ports":[22]})") ==
          "allow fd00::/8 ports=22");
    CHECK(read(R"({"action":"allow","target":"a.example","ports":null})") == "allow a.example");

    const auto refused = [](std::string_view rule) {
        return refusal("{\"egress\":[" + std::string(rule) + "]}");
    };
    CHECK_THAT(refused(R"({"action":"allow","target":"a.example","ports":[443]})"),
               Catch::StartsWith("egress[0].ports: ") && Catch::Contains("a.example:443"));
    CHECK_THAT(refused(R"({"action":"allow","target":"*.example","ports":[443]})"),
               Catch::StartsWith("egress[0].ports: "));
    CHECK(refused(R"({"action":"allow","target":"10.0.0.1:443","ports":[443]})") ==
          "egress[0].ports: the target has a port already");
    CHECK(refused(R"({"action":"allow","ports":[]})") ==
          "egress[0].ports: must hold at least one port");
    CHECK(refused(R"({"action":"allow","ports":443})") == "egress[0].ports: must be an array");
    CHECK(refused(R"({"action":"allow","target":"","ports":[443]})") ==
          "egress[0].target: egress target cannot be empty");
    for (const char* port : {"0", "65536", "-1", "\"443\"", "1.5", "true", "null", "[]"}) {
        CHECK(refused("{\"action\":\"allow\",\"ports\":[" + std::string(port) + "]}") ==
              "egress[0].ports: a port must be a number from 1 to 65535");
    }
    std::string many = "1";
    for (int port = 2; port <= 256; ++port)
        many += "," + std::to_string(port);
    CHECK(parse_policy("{\"egress\":[{\"ports\":[" + many + "]}]}").has_value());
    CHECK(refused("{\"ports\":[" + many + ",257]}") ==
          "egress[0].ports: must not be more than 256");
}

TEST_CASE("ports are shown as they were sent, and saved so") {
    const Policy policy =
        test::written(R"({"egress":[{"action":"allow","target":"10.0.0.0/8","ports":[443,80]},)"
                      R"({"action":"deny","ports":[25]}],"defaultAction":"deny"})");
    CHECK(to_json(policy) ==
          R"({"egress":[{"action":"allow","target":"10.0.0.0/8","ports":[443,80]},)"
          R"({"action":"deny","ports":[25]}],"defaultAction":"deny"})");
    CHECK(to_json(test::written(to_saved_json(policy))) == to_json(policy));
}

TEST_CASE("a patch replaces the rule of the same target and ports, in any order") {
    const Policy before = test::written(
        R"({"egress":[{"action":"allow","target":"10.0.0.0/8","ports":[443,80]},)"
        R"({"action":"allow","target":"10.0.0.0/8"},{"action":"allow","ports":[22]}]})");
    const auto rules =
        parse_patch(R"([{"action":"deny","target":"10.0.0.0/8","ports":[80,443]},)"
                    R"({"action":"deny","ports":[22]},{"action":"deny","ports":[22,23]}])");
    CHECK(test::texts(merge(before, rules.value()).rules) ==
          "deny 10.0.0.0/8 ports=80,443, deny ports=22, deny ports=22,23, allow 10.0.0.0/8");
}

TEST_CASE("a target is removed with all its ports, and ports without a target by their own name") {
    const Policy before =
        test::written(R"({"egress":[{"target":"10.0.0.0/8","ports":[443]},{"target":"10.0.0.0/8"},)"
                      R"({"ports":[443,80]},{"ports":[443]}]})");
    CHECK(test::texts(remove(before, {"10.0.0.0/8"}).policy.rules) ==
          "deny ports=80,443, deny ports=443");
    CHECK(test::texts(remove(before, {"ports=80,443", "443", ""}).policy.rules) ==
          "deny 10.0.0.0/8 ports=443, deny 10.0.0.0/8, deny ports=443");
}

TEST_CASE("a rule counts as often as it has stretches of ports, and in each family") {
    CHECK(check_rule_count(test::written(R"({"egress":[{"ports":[80,81,443]}]})"), 4).has_value());
    CHECK_FALSE(
        check_rule_count(test::written(R"({"egress":[{"ports":[80,82,443]}]})"), 5).has_value());
    const Policy target = test::written(R"({"egress":[{"target":"10.0.0.1","ports":[80,82]}]})");
    CHECK(check_rule_count(target, 2).has_value());
}

TEST_CASE("ports need the packet filter") {
    CHECK(check_without_filter(test::policy({"allow 10.0.0.0/8", "allow a.example:443"}))
              .has_value());
    const auto refused = check_without_filter(test::written(R"({"egress":[{"ports":[80]}]})"));
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().message() == "egress[0].ports: needs the mode dns+nft");
}

TEST_CASE("a patch has rules and a delete has targets") {
    CHECK(test::texts(parse_patch(R"([{"action":"allow","target":"a.example"}])").value()) ==
          "allow a.example");
    CHECK(patch_refusal(" ") == "empty body");
    CHECK(patch_refusal("[]") == "invalid patch rules: empty array");
    CHECK(patch_refusal("null") == "invalid patch rules: empty array");
    CHECK(patch_refusal("{}") == "invalid patch rules: must be an array");
    CHECK_THAT(patch_refusal("[{"), Catch::StartsWith("invalid patch rules: JSON: "));
    CHECK(patch_refusal("[3]") == "invalid patch rules: egress[0]: must be an object");
    CHECK(patch_refusal(R"([{"target":"a.example"},{"action":"x","target":"a.example"}])") ==
          "invalid merged policy: egress[1].action: unsupported action \"x\"");
    CHECK(patch_refusal(R"([{"action":"allow"}])") ==
          "invalid merged policy: egress[0].target: egress target cannot be empty");

    CHECK(parse_delete(R"(["a","b"])").value() == std::vector<std::string>{"a", "b"});
    CHECK(delete_refusal("") == "empty body");
    CHECK(delete_refusal("[]") == "invalid delete targets: empty array");
    CHECK(delete_refusal("7") == "invalid delete targets: must be an array");
    CHECK(delete_refusal("[7]") == "invalid delete targets: [0]: must be a string");
    CHECK_THAT(delete_refusal("["), Catch::StartsWith("invalid delete targets: JSON: "));
}

TEST_CASE("new rules go to the front and replace the old ones of their target") {
    const Policy before = test::policy(
        {"allow a.example", "deny B.example", "allow c.example", "allow b.example:443"},
        Action::allow);
    const Policy after =
        merge(before,
              test::policy({"deny d.example", "allow b.EXAMPLE", "deny b.example", "deny 1.2.3.4"})
                  .rules);
    CHECK(test::texts(after.rules) ==
          "deny d.example, allow b.EXAMPLE, deny 1.2.3.4, allow a.example, allow c.example, allow "
          "b.example:443");
    CHECK(after.default_action == Action::allow);
}

TEST_CASE("targets are removed whatever their case, unknown ones are ignored") {
    const Policy before =
        test::policy({"allow a.example", "deny *.B.example", "allow 10.0.0.0/8", "deny a.example"});
    const Removal removal = remove(before, {" A.Example. ", "*.b.example", "x y z", "no.example"});
    CHECK(removal.removed == 3);
    CHECK(test::texts(removal.policy.rules) == "allow 10.0.0.0/8");
    const Removal none = remove(before, {"b.example", ""});
    CHECK(none.removed == 0);
    CHECK(test::texts(none.policy.rules) == test::texts(before.rules));
}

TEST_CASE("too many rules are refused with both numbers") {
    const Policy two = test::policy({"allow a.example", "deny b.example"});
    CHECK(check_rule_count(two, 2).has_value());
    CHECK(check_rule_count(two, 0).has_value());
    const auto refused = check_rule_count(two, 1);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().code() == ErrorCode::too_large);
    CHECK(refused.error().message() == "egress rule total count 2 exceeds limit 1");
}

TEST_CASE("a policy is shown and saved so that it reads back") {
    CHECK(to_json(Policy()) == R"({"egress":[],"defaultAction":"deny"})");
    CHECK(to_saved_json(Policy()) == "{\n  \"egress\": [],\n  \"defaultAction\": \"deny\"\n}\n");
    const Policy some = test::policy({"allow A.example:443", "deny 10.1.2.3/8"}, Action::allow);
    CHECK(to_json(some) == R"({"egress":[{"action":"allow","target":"A.example:443"},)"
                           R"({"action":"deny","target":"10.1.2.3/8"}],"defaultAction":"allow"})");
    CHECK(to_saved_json(some) == R"({
  "egress": [
    {
      "action": "allow",
      "target": "A.example:443"
    },
    {
      "action": "deny",
      "target": "10.1.2.3/8"
    }
  ],
  "defaultAction": "allow"
}
)");
    CHECK(to_json(parse_policy(to_saved_json(some)).value()) == to_json(some));
}

TEST_CASE("the status leaves out what is empty and never has null") {
    Policy policy;
    PolicyStatus status = status_of(policy, "dns+nft");
    CHECK(to_json(status) ==
          "{\"status\":\"ok\",\"mode\":\"deny_all\",\"enforcementMode\":\"dns+nft\"}\n");
    status.policy = &policy;
    status.enforcement_mode = "";
    status.reason = kReasonReset;
    CHECK(to_json(status) ==
          "{\"status\":\"ok\",\"mode\":\"deny_all\",\"reason\":\"policy reset to default "
          "deny-all\",\"policy\":{\"egress\":[],\"defaultAction\":\"deny\"}}\n");
    policy.default_action = Action::allow;
    CHECK(mode_of(policy) == "allow_all");
    CHECK(mode_of(test::policy({"deny a.example"}, Action::allow)) == "enforcing");
}
