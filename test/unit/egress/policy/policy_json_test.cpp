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
    const auto parsed = parse_policy(R"({"defaultAction":" ALLOW ","other":{"a":[1]},"egress":[
        {"action":"Allow","target":"Api.example.com."},{"target":"10.1.2.3/8","x":1},
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
              test::rules({"deny d.example", "allow b.EXAMPLE", "deny b.example", "deny 1.2.3.4"}));
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
