#include "egress/vault/vault_documents.hpp"

#include "unit/egress/vault/vaults.hpp"

using namespace opensandbox::egress;
using opensandbox::ErrorCode;
using test::json;

namespace {

std::string refusal(std::string_view text) {
    INFO(text);
    const auto parsed = parse_vault_create(json(text));
    REQUIRE_FALSE(parsed.has_value());
    CHECK(parsed.error().code() == ErrorCode::invalid_argument);
    return parsed.error().message();
}

std::string binding_refusal(std::string_view match, std::string_view auth) {
    return refusal("{'bindings':[" + test::binding("b", match, auth) + "]}");
}

Binding parsed_binding(std::string_view match, std::string_view auth) {
    const auto parsed = parse_vault_create(test::document("", test::binding("b", match, auth)));
    INFO((parsed ? std::string() : parsed.error().message()));
    REQUIRE(parsed.has_value());
    return parsed->bindings.at(0);
}

constexpr std::string_view kBearer = "'type':'bearer','credential':'c'";

}  // namespace

TEST_CASE("a vault document is read with the contract's defaults") {
    const auto parsed = parse_vault_create(
        json("{'credentials':[{'name':'c','source':{'type':'inline','value':'s3cret'}},"
             "{'name':'d','source':{'type':'','value':'x'}}],'bindings':null}"));
    REQUIRE(parsed.has_value());
    REQUIRE(parsed->credentials.size() == 2);
    CHECK(parsed->credentials[0].secret->value() == "s3cret");
    CHECK(parsed->credentials[1].source_type == "inline");

    const Binding binding = parsed_binding("'hosts':['API.Example.com.','*.example.org']", kBearer);
    CHECK(binding.match.schemes == std::vector<std::string>{"https"});
    CHECK(binding.match.ports == std::vector<std::uint16_t>{443});
    CHECK(binding.match.methods ==
          std::vector<std::string>{"GET", "POST", "PUT", "PATCH", "DELETE"});
    REQUIRE(binding.match.paths.size() == 1);
    CHECK(binding.match.paths[0].text() == "/*");
    CHECK(binding.match.hosts[0].text() == "api.example.com");
    CHECK(binding.match.hosts[1].text() == "*.example.org");
    CHECK_FALSE(binding.match.methods_given);
    CHECK_FALSE(binding.match.paths_given);
    CHECK(binding.auth.headers.at(0).name == "Authorization");
    // A port follows from its scheme.
    CHECK(parsed_binding("'hosts':['a.example.com'],'schemes':['http','HTTPS']", kBearer)
              .match.ports == std::vector<std::uint16_t>{80, 443});
    CHECK(parsed_binding("'hosts':['a.example.com'],'methods':['head']", kBearer).match.methods ==
          std::vector<std::string>{"HEAD"});
}

TEST_CASE("each type of authentication has its members") {
    const std::string hosts = "'hosts':['a.example.com']";
    CHECK(parsed_binding(hosts, "'type':'apiKey','name':'x-API-key','credential':'c'")
              .auth.headers.at(0)
              .name == "X-Api-Key");
    const Binding custom =
        parsed_binding(hosts,
                       "'type':'customHeaders','headers':[{'name':'x-a','credential':'c'},"
                       "{'name':'x-b','credential':'d'}]");
    CHECK(custom.auth.headers.at(1).name == "X-B");
    const Binding through = parsed_binding(
        hosts,
        "'type':'passthrough','substitutions':[{'credential':'c','placeholder':'@@','in':['path',"
        "'body']}]");
    CHECK(through.auth.headers.empty());
    CHECK(through.auth.substitutions.at(0).path);
    CHECK(through.auth.substitutions.at(0).body);
    CHECK_FALSE(through.auth.substitutions.at(0).header);
    CHECK_THAT(binding_refusal(hosts, "'type':'bearer','credential':'c','name':'x'"),
               Catch::Contains("bindings[0].auth.name: does not belong to type bearer"));
    CHECK_THAT(binding_refusal(hosts, "'type':'passthrough','credential':'c'"),
               Catch::Contains("does not belong"));
    CHECK_THAT(binding_refusal(hosts, "'type':'digest'"), Catch::Contains("must be bearer, basic"));
    CHECK_THAT(binding_refusal(hosts, "'type':'bearer'"),
               Catch::Contains("auth.credential: must not be empty"));
    CHECK_THAT(binding_refusal(hosts, "'type':'apiKey','credential':'c'"),
               Catch::Contains("auth.name: must not be empty"));
    CHECK_THAT(binding_refusal(hosts, "'type':'apiKey','name':'a b','credential':'c'"),
               Catch::Contains("name of an HTTP header"));
    CHECK_THAT(binding_refusal(hosts, "'type':'customHeaders','headers':[]"),
               Catch::Contains("must not be empty"));
    CHECK_THAT(binding_refusal(hosts,
                               "'type':'customHeaders','headers':[{'name':'x-a','credential':'c'},"
                               "{'name':'X-A','credential':'c'}]"),
               Catch::Contains("twice"));
}

TEST_CASE("reserved headers take no credentials") {
    for (const char* name :
         {"Host", "content-length", "Content-Type", "transfer-encoding", "Connection", "upgrade",
          "TE", "trailer", "Proxy-Authorization", "proxy-authenticate", "forwarded",
          "x-forwarded-for", "X-Forwarded-Host", "x-forwarded-proto"}) {
        CHECK_THAT(
            binding_refusal("'hosts':['a.example.com']",
                            "'type':'apiKey','credential':'c','name':'" + std::string(name) + "'"),
            Catch::Contains("is reserved"));
    }
}

TEST_CASE("unknown fields are refused wherever they stand") {
    CHECK(refusal("{'x':1}") == "unknown field \"x\"");
    CHECK(refusal("{'credentials':[{'name':'c','source':{'value':'v'},'y':1}]}") ==
          "credentials[0]: unknown field \"y\"");
    CHECK(refusal("{'credentials':[{'name':'c','source':{'value':'v','z':1}}]}") ==
          "credentials[0].source: unknown field \"z\"");
    CHECK(binding_refusal("'hosts':['a.example.com'],'q':1", kBearer) ==
          "bindings[0].match: unknown field \"q\"");
    CHECK(binding_refusal("'hosts':['a.example.com']", "'type':'bearer','in':'header'") ==
          "bindings[0].auth: unknown field \"in\"");
}

TEST_CASE("a bad vault document is refused with its place") {
    CHECK_THAT(refusal("{"), Catch::StartsWith("JSON: "));
    CHECK_THAT(refusal("{} {}"), Catch::StartsWith("JSON: extra data"));
    CHECK(refusal("[]") == "must be an object");
    CHECK_THAT(refusal(std::string(kMaxVaultBytes + 1, ' ')), Catch::Contains("1048576"));
    CHECK_THAT(refusal(std::string(40, '[')), Catch::StartsWith("JSON: "));
    CHECK(refusal("{'credentials':{}}") == "credentials: must be an array");
    CHECK(refusal("{'credentials':[{'name':' ','source':{'value':'v'}}]}") ==
          "credentials[0].name: must not be empty");
    CHECK(refusal("{'credentials':[{'name':'a\\nb','source':{'value':'v'}}]}") ==
          "credentials[0].name: must be at most 256 bytes without control characters");
    CHECK(refusal("{'credentials':[{'name':'c'}]}") == "credentials[0].source: must not be empty");
    CHECK(refusal("{'credentials':[{'name':'c','source':{'value':''}}]}") ==
          "credentials[0].source.value: must not be empty");
    CHECK(refusal("{'credentials':[{'name':'c','source':{'value':7}}]}") ==
          "credentials[0].source.value: must be a string");
    CHECK(refusal("{'credentials':[{'name':'c','source':{'type':'file','value':'v'}}]}") ==
          "credentials[0].source.type: unsupported credential source type \"file\"");
    std::string many = "{'credentials':[0";
    for (std::size_t i = 0; i < kMaxVaultItems; ++i)
        many += ",0";
    CHECK(refusal(many + "]}") == "credentials: must not have more than 256 items");
}

TEST_CASE("a bad match is refused") {
    const auto hosts = [](std::string_view text) {
        return binding_refusal("'hosts':[" + std::string(text) + "]", kBearer);
    };
    CHECK(hosts("") == "bindings[0].match.hosts: must not be empty");
    CHECK(hosts("'localhost'") == "bindings[0].match.hosts[0]: must be a full name with a dot");
    CHECK(hosts("'a.example.com','*.com'") ==
          "bindings[0].match.hosts[1]: must be a full name with a dot");
    for (const char* host : {"'10.0.0.1'", "'https://a.example.com'", "'a.example.com/x'",
                             "'a.example.com:443'", "'[fd00::1]'", "'*'", "'a.*.example.com'"}) {
        CHECK_THAT(hosts(host), Catch::StartsWith("bindings[0].match.hosts[0]: "));
    }
    const auto match = [](std::string_view text) {
        return binding_refusal("'hosts':['a.example.com']," + std::string(text), kBearer);
    };
    CHECK_THAT(match("'schemes':['ftp']"), Catch::Contains("https or http"));
    CHECK_THAT(match("'ports':[0]"), Catch::Contains("1 to 65535"));
    CHECK_THAT(match("'ports':[70000]"), Catch::Contains("1 to 65535"));
    CHECK_THAT(match("'ports':['443']"), Catch::Contains("1 to 65535"));
    CHECK_THAT(match("'methods':['G T']"), Catch::Contains("names of HTTP methods"));
    CHECK_THAT(match("'paths':['v1/*']"), Catch::Contains("must start with /"));
    CHECK_THAT(match("'paths':['/v1/*/x']"), Catch::Contains("at its end only"));
    CHECK_THAT(match("'paths':['/v1?x=1']"), Catch::Contains("without query"));
    CHECK_THAT(match("'paths':['/v1/../x']"), Catch::Contains("dot segments"));
    CHECK_THAT(match("'paths':['/v1/%2e%2e/*']"), Catch::Contains("dot segments"));
    CHECK_THAT(match("'methods':'GET'"), Catch::Contains("must be an array"));
}

TEST_CASE("bad substitutions are refused") {
    const auto with = [](std::string_view text) {
        return binding_refusal("'hosts':['a.example.com']",
                               "'type':'passthrough','substitutions':[" + std::string(text) + "]");
    };
    CHECK_THAT(with("{'credential':'c','placeholder':'@@','in':[]}"),
               Catch::Contains("in: must not be empty"));
    CHECK_THAT(with("{'credential':'c','placeholder':'@@','in':['cookie']}"),
               Catch::Contains("must be of path, query, header and body"));
    CHECK_THAT(with("{'credential':'c','placeholder':'','in':['path']}"),
               Catch::Contains("placeholder: must not be empty"));
    CHECK_THAT(with("{'credential':'c','placeholder':'@@','in':['path']},"
                    "{'credential':'d','placeholder':'@@','in':['query']}"),
               Catch::Contains("substitutions[1].placeholder: is there twice"));
    CHECK_THAT(
        with("{'credential':'c','placeholder':'" + std::string(1025, 'x') + "','in':['path']}"),
        Catch::Contains("1024"));
}

TEST_CASE("a mutation is read with its parts") {
    const auto parsed = parse_vault_mutation(json(
        "{'expectedRevision':3,'credentials':{'add':[" + test::credential("a", "1") +
        "],'replace':[" + test::credential("b", "2") + "],'delete':['c']},'bindings':{'add':[" +
        test::binding("d", "'hosts':['a.example.com']", kBearer) + "],'delete':['e','f']}}"));
    REQUIRE(parsed.has_value());
    CHECK(parsed->expected_revision == 3U);
    CHECK(parsed->add_credentials.at(0).name == "a");
    CHECK(parsed->replace_credentials.at(0).secret->value() == "2");
    CHECK(parsed->delete_credentials == std::vector<std::string>{"c"});
    CHECK(parsed->add_bindings.at(0).name == "d");
    CHECK(parsed->replace_bindings.empty());
    CHECK(parsed->delete_bindings == std::vector<std::string>{"e", "f"});
    CHECK_FALSE(parse_vault_mutation("{}").value().expected_revision.has_value());
    const auto message = [](std::string_view text) {
        const auto bad = parse_vault_mutation(json(text));
        REQUIRE_FALSE(bad.has_value());
        return bad.error().message();
    };
    CHECK(message("{'expectedRevision':-1}") == "expectedRevision: must be a whole number");
    CHECK(message("{'expectedRevision':1.5}") == "expectedRevision: must be a whole number");
    CHECK(message("{'bindings':{'remove':[]}}") == "bindings: unknown field \"remove\"");
    CHECK(message("{'credentials':[]}") == "credentials: must be an object");
    CHECK(message("{'credentials':{'delete':[1]}}") == "credentials.delete[0]: must be a string");
}

TEST_CASE("no error tells a credential's value") {
    for (const char* text :
         {"{'credentials':[{'name':'c','source':{'type':'x','value':'hunter2hunter2'}}]}",
          "{'credentials':[{'name':'c','source':{'value':'hunter2hunter2'},'x':1}]}",
          "{'credentials':[{'name':'c','source':'hunter2hunter2'}]}",
          "{'credentials':[{'name':'c','source':{'value':'hunter2hunter2'}}]} x"}) {
        CHECK_THAT(refusal(text), !Catch::Contains("hunter2"));
    }
}
