#include "egress/vault/vault.hpp"

#include "egress/vault/vault_json.hpp"
#include "support/catch_result.hpp"
#include "unit/egress/vault/vaults.hpp"

using namespace opensandbox::egress;
using opensandbox::ErrorCode;
using opensandbox::Result;
using test::binding;
using test::credential;
using test::json;

namespace {

constexpr std::string_view kBearer = "'type':'bearer','credential':'c'";

std::string bound(std::string_view name, std::string_view match) {
    return binding(name, match, kBearer);
}

/// What creating a vault with these bindings (of credential c) says.
std::string refusal(std::string_view bindings, VaultSettings settings = {},
                    const EffectivePolicy& policy = test::open_policy()) {
    Vault vault(std::move(settings));
    const auto made = test::create(vault, credential("c", "s3cret"), bindings, policy);
    REQUIRE_FALSE(made.has_value());
    CHECK(made.error().code() == ErrorCode::invalid_argument);
    CHECK_FALSE(vault.state().has_value());
    CHECK(vault.active() == nullptr);
    return made.error().message();
}

bool accepts(std::string_view bindings) {
    Vault vault((VaultSettings()));
    return test::create(vault, credential("c", "s3cret"), bindings).has_value();
}

Result<VaultStatePtr> change(Vault& vault, std::string_view text) {
    auto parsed = parse_vault_mutation(json(text));
    INFO((parsed ? std::string() : parsed.error().message()));
    REQUIRE(parsed.has_value());
    return vault.change(std::move(*parsed), test::open_policy());
}

std::string change_refusal(Vault& vault, std::string_view text, ErrorCode code) {
    const auto changed = change(vault, text);
    REQUIRE_FALSE(changed.has_value());
    CHECK(changed.error().code() == code);
    return changed.error().message();
}

}  // namespace

TEST_CASE("a vault's state shows everything but the secrets") {
    Vault vault((VaultSettings()));
    const auto made =
        test::create(vault, credential("z", "s3cret-z") + "," + credential("a", "s3cret-a"),
                     binding("key", "'hosts':['b.example.com'],'paths':['/v1/*','/x']",
                             "'type':'apiKey','name':'x-api-key','credential':'a'") +
                         "," +
                         binding("bear", "'hosts':['*.example.org'],'methods':['GET']",
                                 "'type':'bearer','credential':'z'"));
    REQUIRE(made.has_value());
    const std::string credentials =
        "'credentials':[{'name':'a','sourceType':'inline','revision':1},"
        "{'name':'z','sourceType':'inline','revision':1}]";
    const std::string bear =
        "{'name':'bear','revision':1,'match':{'schemes':['https'],'ports':[443],"
        "'hosts':['*.example.org'],'methods':['GET'],'paths':['/*']},'auth':{'type':'bearer'}}";
    const std::string key =
        "{'name':'key','revision':1,'match':{'schemes':['https'],'ports':[443],"
        "'hosts':['b.example.com'],'methods':['GET','POST','PUT','PATCH','DELETE'],"
        "'paths':['/v1/*','/x']},'auth':{'type':'apiKey','name':'X-Api-Key'}}";
    const VaultState& state = **made;
    CHECK(to_json(state) ==
          json("{'revision':1," + credentials + ",'bindings':[" + bear + "," + key + "]}\n"));
    CHECK(credentials_json(state) == json("{'revision':1," + credentials + "}\n"));
    CHECK(bindings_json(state) == json("{'revision':1,'bindings':[" + bear + "," + key + "]}\n"));
    CHECK(credential_json(state, "a").value() ==
          json("{'name':'a','sourceType':'inline','revision':1}\n"));
    CHECK(binding_json(state, "key").value() == json(key + "\n"));
    CHECK(credential_json(state, "b").error().message() == "credential not found");
    CHECK(binding_json(state, "a").error().message() == "binding not found");
    CHECK(binding_json(state, "a").error().code() == ErrorCode::not_found);
}

TEST_CASE("a vault is created once, changed by revisions, and removed") {
    Vault vault((VaultSettings()));
    CHECK(vault.state().error().code() == ErrorCode::not_found);
    CHECK(vault.remove().error().code() == ErrorCode::not_found);
    CHECK(change_refusal(vault, "{}", ErrorCode::not_found) == "credential vault not found");
    REQUIRE(test::create(vault, credential("c", "one"), bound("b", "'hosts':['a.example.com']"))
                .has_value());
    CHECK(test::create(vault, "", "").error().code() == ErrorCode::conflict);

    const auto second = change(
        vault, "{'expectedRevision':1,'credentials':{'add':[" + credential("d", "two") + "]}}");
    REQUIRE(second.has_value());
    CHECK((*second)->revision == 2);
    CHECK((*second)->credential("c")->revision == 1);
    CHECK((*second)->credential("d")->revision == 2);
    CHECK(change_refusal(vault, "{'expectedRevision':1}", ErrorCode::conflict) ==
          "credential vault revision mismatch: expected 1, current 2");
    CHECK(change(vault, "{}").value()->revision == 3);
    CHECK(vault.remove().has_value());
    CHECK(vault.active() == nullptr);
    CHECK(test::create(vault, "", "").value()->revision == 1);
}

TEST_CASE("a change is applied whole or not at all") {
    Vault vault((VaultSettings()));
    REQUIRE(test::create(vault, credential("c", "one") + "," + credential("d", "two"),
                         bound("b", "'hosts':['a.example.com']"))
                .has_value());
    const auto invalid = [&](std::string_view text) {
        return change_refusal(vault, text, ErrorCode::invalid_argument);
    };
    CHECK(invalid("{'credentials':{'delete':['x']}}") == "credential \"x\" does not exist");
    CHECK(invalid("{'credentials':{'replace':[" + credential("x", "v") + "]}}") ==
          "credential \"x\" does not exist");
    CHECK(invalid("{'credentials':{'add':[" + credential("c", "v") + "]}}") ==
          "credential \"c\" already exists");
    CHECK(invalid("{'credentials':{'delete':['d'],'add':[" + credential("d", "v") + "]}}") ==
          "credential \"d\" is mentioned more than once");
    CHECK(invalid("{'bindings':{'delete':['b','b']}}") ==
          "binding \"b\" is mentioned more than once");
    // The binding that needs the credential stays.
    CHECK(invalid("{'credentials':{'delete':['c']}}") == "binding \"b\": unknown credential \"c\"");
    CHECK(invalid("{'credentials':{'replace':[" + credential("c", "new") +
                  "]},'bindings':{'add':[" + bound("e", "'hosts':['a.example.com']") + "]}}") ==
          "binding \"e\": a request may match binding \"b\" as well");
    CHECK(vault.state().value()->revision == 1);
    CHECK(vault.state().value()->credential("c")->secret->value() == "one");

    const auto changed = change(
        vault, "{'credentials':{'delete':['c'],'replace':[" + credential("d", "three") +
                   "]},'bindings':{'delete':['b'],'add':[" +
                   binding("e", "'hosts':['a.example.com']", "'type':'basic','credential':'d'") +
                   "]}}");
    REQUIRE(changed.has_value());
    CHECK((*changed)->credential("c") == nullptr);
    CHECK((*changed)->credential("d")->secret->value() == "three");
    CHECK((*changed)->binding("e")->auth.type == AuthType::basic);
}

TEST_CASE("two items of one name are refused") {
    Vault vault((VaultSettings()));
    const auto made = test::create(vault, credential("c", "1") + "," + credential("c", "2"), "");
    CHECK(made.error().message() == "credential \"c\" is mentioned more than once");
}

TEST_CASE("credentials must exist and fit into their headers") {
    CHECK(refusal(binding("b", "'hosts':['a.example.com']", "'type':'bearer','credential':'no'")) ==
          "binding \"b\": unknown credential \"no\"");
    CHECK(refusal(binding("b", "'hosts':['a.example.com']",
                          "'type':'passthrough','substitutions':[{'credential':'no',"
                          "'placeholder':'@@','in':['body']}]")) ==
          "binding \"b\": unknown credential \"no\"");
    const auto lines = [](std::string_view auth) {
        Vault vault((VaultSettings()));
        return test::create(vault, credential("c", "line\\r\\nX-Evil: 1"),
                            binding("b", "'hosts':['a.example.com']", auth));
    };
    CHECK_THAT(lines(kBearer).error().message(),
               Catch::Contains("cannot stand in a header") && !Catch::Contains("Evil"));
    const std::string text =
        "'type':'passthrough','substitutions':[{'credential':'c','placeholder':'@@','in':['";
    CHECK_FALSE(lines(text + "header']}]").has_value());
    CHECK(lines(text + "body']}]").has_value());
}

TEST_CASE("bindings that one request could match are refused") {
    const auto both = [](std::string_view a, std::string_view b) {
        return bound("a", a) + "," + bound("b", b);
    };
    const std::string host = "'hosts':['a.example.com']";
    CHECK(refusal(both(host, host)) == "binding \"b\": a request may match binding \"a\" as well");
    CHECK_THAT(refusal(both("'hosts':['*.example.com']", "'hosts':['*.a.example.com']")),
               Catch::Contains("as well"));
    CHECK_THAT(refusal(both(host + ",'paths':['/v1/*']", host + ",'paths':['/v1/x']")),
               Catch::Contains("as well"));
    CHECK_THAT(refusal(both(host + ",'paths':['/v1/a*']", host + ",'paths':['/v1/*']")),
               Catch::Contains("as well"));
    CHECK_THAT(refusal(both(host + ",'methods':['GET','PUT']", host + ",'methods':['PUT']")),
               Catch::Contains("as well"));
    CHECK(accepts(both(host + ",'paths':['/v1/*']", host + ",'paths':['/v2/*']")));
    CHECK(accepts(both(host + ",'paths':['/v1']", host + ",'paths':['/v1/*']")));
    CHECK(accepts(both(host + ",'methods':['GET']", host + ",'methods':['PUT']")));
    CHECK(accepts(both(host + ",'schemes':['http']", host)));
    // An exact host beats a wildcard.
    CHECK(accepts(both(host, "'hosts':['*.example.com']")));
    CHECK(accepts(both("'hosts':['*.a.example.com']", "'hosts':['*.b.example.com']")));
}

TEST_CASE("bindings are for intercepted connections only") {
    CHECK(refusal(bound("b", "'hosts':['a.example.com'],'ports':[8443]")) ==
          "binding \"b\": port 8443 is not intercepted");
    VaultSettings settings;
    settings.passes_through = [](const HostPattern& host) { return host.name == "a.example.com"; };
    CHECK(refusal(bound("b", "'hosts':['a.example.com']"), settings) ==
          "binding \"b\": connections to a.example.com are not intercepted");
}

TEST_CASE("a guard wants bindings for a part of a host") {
    VaultSettings settings;
    settings.require_scoped_match = true;
    const std::string host = "'hosts':['a.example.com']";
    CHECK(refusal(bound("b", host), settings) == "binding \"b\": match.methods must be given");
    CHECK(refusal(bound("b", host + ",'methods':['GET']"), settings) ==
          "binding \"b\": match.paths must be given");
    CHECK(refusal(bound("b", host + ",'methods':['GET'],'paths':['/a','/*']"), settings) ==
          "binding \"b\": match.paths must not be every path (/*)");
    Vault vault(settings);
    CHECK(test::create(vault, credential("c", "s3cret"),
                       bound("b", host + ",'methods':['GET'],'paths':['/a*']"))
              .has_value());
}

TEST_CASE("every host of a binding is allowed by a rule") {
    const auto with = [](std::string_view match, std::initializer_list<std::string_view> rules,
                         Action action = Action::deny) {
        const EffectivePolicy policy({}, test::policy(rules, action));
        Vault vault((VaultSettings()));
        return test::create(vault, credential("c", "s3cret"), bound("b", match), policy)
            .has_value();
    };
    const std::string exact = "'hosts':['a.example.com']";
    const std::string wildcard = "'hosts':['*.example.com']";
    CHECK(with(exact, {"allow a.example.com"}));
    CHECK(with(exact, {"allow *.com"}));
    CHECK(with(exact, {"allow a.example.com:443/tcp"}));
    CHECK_FALSE(with(exact, {"allow a.example.com:80"}));
    CHECK_FALSE(with(exact, {"deny *.example.com", "allow a.example.com"}));
    CHECK_FALSE(with(exact, {"allow b.example.com"}));
    CHECK_FALSE(with(exact, {}, Action::allow));
    CHECK(with(wildcard, {"allow *.example.com"}));
    CHECK(with(wildcard, {"deny x.example.com", "deny *.y.example.com", "allow *.com"}));
    CHECK_FALSE(with(wildcard, {"allow *.a.example.com", "allow a.example.com"}));
    CHECK_FALSE(with(wildcard, {"deny *.com", "allow *.example.com"}));
    CHECK_FALSE(with(wildcard, {}, Action::allow));
    CHECK_FALSE(with("'hosts':['a.example.com','b.example.com']", {"allow a.example.com"}));
    const EffectivePolicy none({}, {});
    CHECK(refusal(bound("b", exact), {}, none) ==
          "binding \"b\": host a.example.com port 443 is not allowed by an explicit egress rule");
}

TEST_CASE("a new policy must go on covering the bindings") {
    Vault vault((VaultSettings()));
    const EffectivePolicy none({}, {});
    CHECK(vault.check_policy(none).has_value());
    REQUIRE(test::create(vault, credential("c", "s3cret"), bound("b", "'hosts':['a.example.com']"))
                .has_value());
    CHECK(vault.check_policy(test::open_policy()).has_value());
    const auto refused = vault.check_policy(none);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().code() == ErrorCode::invalid_argument);
    CHECK_THAT(refused.error().message(),
               Catch::StartsWith("credential vault policy validation: binding \"b\": "));
}

TEST_CASE("a vault that decides what is intercepted asks which revision is changed", "[egress]") {
    VaultSettings settings;
    settings.credential_bound = GENERATE(false, true);
    Vault vault(settings);
    REQUIRE(test::create(vault, credential("key", "value"), ""));
    const auto blind = vault.change(VaultMutation(), test::open_policy());
    CHECK(blind.has_value() != settings.credential_bound);
    if (!blind) CHECK(blind.error().code() == ErrorCode::conflict);
    VaultMutation named;
    named.expected_revision = (*vault.state())->revision;
    CHECK(vault.change(std::move(named), test::open_policy()));
}

TEST_CASE("a vault says what is known of it", "[egress]") {
    VaultSettings settings;
    settings.credential_bound = true;
    Vault vault(settings);
    CHECK(to_string(vault.standing()) == "active-empty");
    CHECK_FALSE(vault.is_held());
    vault.lose();
    CHECK(vault.is_held());
    CHECK(to_string(vault.standing()) == "bootstrapping");
    const auto read = vault.state();
    REQUIRE_FALSE(read);
    CHECK(read.error().code() == ErrorCode::unavailable);
    CHECK(read.error().message().starts_with("CREDENTIAL_REVISION_INDETERMINATE"));
    VaultMutation change;
    change.expected_revision = 1;
    CHECK(vault.change(std::move(change), test::open_policy()).error().code() ==
          ErrorCode::unavailable);
    // A refused one makes nothing known.
    CHECK_FALSE(test::create(
        vault, "",
        binding("b", "'hosts':['api.example.com']", "'type':'bearer','credential':'none'")));
    CHECK(vault.standing() == VaultStanding::bootstrapping);
    SECTION("it is written again") {
        REQUIRE(test::create(
            vault, credential("key", "value"),
            binding("b", "'hosts':['api.example.com']", "'type':'bearer','credential':'key'")));
        CHECK(to_string(vault.standing()) == "active");
        CHECK((*vault.state())->revision == 1);
    }
    SECTION("it is known to be gone") {
        CHECK(vault.remove());
        CHECK(vault.standing() == VaultStanding::active_empty);
        CHECK(vault.remove().error().code() == ErrorCode::not_found);
    }
}

TEST_CASE("a binding tells the connections that it wants read", "[egress]") {
    const auto vault =
        test::active(credential("key", "value"),
                     binding("a", "'hosts':['api.example.com','*.example.org']",
                             "'type':'bearer','credential':'key'") +
                         "," +
                         binding("b", "'hosts':['plain.example.com'],'schemes':['http']",
                                 "'type':'bearer','credential':'key'"));
    CHECK(vault->concerns("https", 443, "api.example.com"));
    CHECK(vault->concerns("https", 443, "a.b.example.org"));
    CHECK_FALSE(vault->concerns("https", 443, "example.org"));
    CHECK_FALSE(vault->concerns("https", 443, "other.example.com"));
    CHECK_FALSE(vault->concerns("https", 80, "api.example.com"));
    CHECK_FALSE(vault->concerns("https", 443, "plain.example.com"));
    CHECK_FALSE(vault->concerns("https", 443, ""));
}

TEST_CASE("where bindings decide what is intercepted, https is at port 443", "[egress]") {
    VaultSettings settings;
    settings.credential_bound = GENERATE(false, true);
    Vault vault(settings);
    const auto made =
        test::create(vault, credential("key", "value"),
                     binding("b", "'hosts':['api.example.com'],'schemes':['https'],'ports':[80]",
                             "'type':'bearer','credential':'key'"));
    CHECK(made.has_value() != settings.credential_bound);
    if (!made) CHECK(made.error().message().find("port 443 alone") != std::string::npos);
}
