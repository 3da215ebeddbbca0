#include "egress/vault/injection.hpp"

#include "unit/egress/vault/vaults.hpp"

using namespace opensandbox::egress;
using test::binding;
using test::credential;

namespace {

using Headers = std::vector<HeaderField>;
using Kind = Injection::Kind;

Injection ask(const ActiveVault& vault, std::string_view method, std::string_view url,
              const Headers& headers = {}) {
    VaultRequest request;
    request.scheme = url.substr(0, url.find(':'));
    url.remove_prefix(request.scheme.size() + 3);
    const auto slash = url.find('/');
    request.host = url.substr(0, slash);
    request.target = url.substr(slash);
    request.port = request.scheme == "https" ? 443 : 80;
    request.method = method;
    request.headers = headers;
    return vault.inject(request);
}

std::string text(const Injection& injection) {
    if (!injection.headers) return "-";
    std::string out;
    for (const HeaderField& field : *injection.headers) {
        out += (out.empty() ? "" : "|") + field.name + ": " + field.value;
    }
    return out;
}

std::string body(Injection& injection, std::string_view content) {
    REQUIRE(injection.body.has_value());
    std::string out;
    injection.body->feed(content, out);
    injection.body->finish(out);
    return out;
}

std::shared_ptr<const ActiveVault> bearer(std::string_view match) {
    return test::active(credential("c", "s3cret"),
                        binding("b", match, "'type':'bearer','credential':'c'"));
}

std::shared_ptr<const ActiveVault> substituting(std::string_view surfaces,
                                                std::string_view value = "s3 c/r+t") {
    return test::active(credential("c", value),
                        binding("b", "'hosts':['api.example.com']",
                                "'type':'passthrough','substitutions':[{'credential':'c',"
                                "'placeholder':'__KEY__','in':[" +
                                    std::string(surfaces) + "]}]"));
}

}  // namespace

TEST_CASE("a matching request gets its credential, others go as they are") {
    const auto vault =
        bearer("'hosts':['api.example.com'],'methods':['GET'],'paths':['/v1/*','/login']");
    const Injection made = ask(*vault, "GET", "https://API.example.com/v1/items?x=1");
    CHECK(made.kind == Kind::rewritten);
    CHECK(made.binding == "b");
    CHECK(text(made) == "Authorization: Bearer s3cret");
    CHECK_FALSE(made.target.has_value());
    CHECK_FALSE(made.body.has_value());
    CHECK(ask(*vault, "GET", "https://api.example.com/login").kind == Kind::rewritten);
    CHECK(ask(*vault, "GET", "https://api.example.com/login?next=/v1").kind == Kind::rewritten);
    CHECK(ask(*vault, "GET", "https://api.example.com/login/x").kind == Kind::unchanged);
    CHECK(ask(*vault, "GET", "https://api.example.com/v2").kind == Kind::unchanged);
    CHECK(ask(*vault, "POST", "https://api.example.com/v1/items").kind == Kind::unchanged);
    CHECK(ask(*vault, "get", "https://api.example.com/v1/items").kind == Kind::unchanged);
    CHECK(ask(*vault, "GET", "http://api.example.com/v1/items").kind == Kind::unchanged);
    CHECK(ask(*vault, "GET", "https://x.api.example.com/v1/items").kind == Kind::unchanged);
    CHECK(ask(*vault, "GET", "https://api.example.com.evil.org/v1/items").kind == Kind::unchanged);
}

TEST_CASE("what a client sent under the header's name is replaced") {
    const auto vault = bearer("'hosts':['api.example.com']");
    CHECK(
        text(ask(
            *vault, "GET", "https://api.example.com/",
            {{"accept", "*/*"}, {"authorization", "mine"}, {"X", "1"}, {"AUTHORIZATION", "2"}})) ==
        "accept: */*|Authorization: Bearer s3cret|X: 1");
}

TEST_CASE("every type of authentication writes its header") {
    const auto header = [](std::string_view auth) {
        const auto vault =
            test::active(credential("c", "dXNlcjpwdw==") + "," + credential("d", "k2"),
                         binding("b", "'hosts':['api.example.com']", auth));
        return text(ask(*vault, "GET", "https://api.example.com/"));
    };
    CHECK(header("'type':'basic','credential':'c'") == "Authorization: Basic dXNlcjpwdw==");
    CHECK(header("'type':'apiKey','name':'x-api-key','credential':'d'") == "X-Api-Key: k2");
    CHECK(header("'type':'customHeaders','headers':[{'name':'x-a','credential':'c'},"
                 "{'name':'x-b','credential':'d'}]") == "X-A: dXNlcjpwdw==|X-B: k2");
    CHECK(header("'type':'passthrough'") == "-");
}

TEST_CASE("an exact host beats a wildcard") {
    const auto vault = test::active(
        credential("c", "exact") + "," + credential("d", "wide"),
        binding("e", "'hosts':['api.example.com'],'paths':['/v1/*']",
                "'type':'bearer','credential':'c'") +
            "," + binding("w", "'hosts':['*.example.com']", "'type':'bearer','credential':'d'"));
    CHECK(text(ask(*vault, "GET", "https://api.example.com/v1/a")) ==
          "Authorization: Bearer exact");
    CHECK(text(ask(*vault, "GET", "https://api.example.com/v2/a")) == "Authorization: Bearer wide");
    CHECK(text(ask(*vault, "GET", "https://a.b.example.com/v1/a")) == "Authorization: Bearer wide");
    CHECK(ask(*vault, "GET", "https://example.com/v1/a").kind == Kind::unchanged);
}

TEST_CASE("a request that two bindings match is refused") {
    // The checks at writing do not let this happen: it is built past them.
    auto parsed = parse_vault_create(test::document(
        credential("c", "s3cret"),
        binding("a", "'hosts':['api.example.com']", "'type':'bearer','credential':'c'") + "," +
            binding("b", "'hosts':['api.example.com']", "'type':'bearer','credential':'c'")));
    REQUIRE(parsed.has_value());
    const ActiveVault vault(parsed->credentials, std::move(parsed->bindings));
    const Injection refused = ask(vault, "GET", "https://api.example.com/");
    CHECK(refused.kind == Kind::refused);
    CHECK(refused.status == 403);
    CHECK(refused.text == "credential binding ambiguous");
    CHECK_FALSE(refused.headers.has_value());
}

TEST_CASE("a path that a server may read as another one gets no credential") {
    const auto vault = bearer("'hosts':['api.example.com'],'paths':['/v1/*']");
    for (const char* path : {"/v1/../admin", "/v1/%2e%2e/admin", "/v1/..%2fadmin",
                             "/v1/%252e%252e%252fadmin", "/v1/..\\\\admin", "/v1/..;x/admin",
                             "/v1/./x", "/v1/%zz", "/v1/a%00b", "/v1/..", "/v1/%25252525252e"}) {
        INFO(path);
        const Injection refused = ask(*vault, "GET", "https://api.example.com" + std::string(path));
        CHECK(refused.kind == Kind::refused);
        CHECK(refused.text == "credential binding path ambiguous");
    }
    for (const char* path : {"/v1/@scope%2fname", "/v1/a..b/c", "/v1/100%25", "/v1/x?y=../z",
                             "/v1//x", "/v1/.well-known"}) {
        INFO(path);
        CHECK(ask(*vault, "GET", "https://api.example.com" + std::string(path)).kind ==
              Kind::rewritten);
    }
    // No credential is at stake.
    CHECK(ask(*vault, "GET", "https://api.example.com/v2/../v1/x").kind == Kind::unchanged);
    CHECK(
        ask(*bearer("'hosts':['api.example.com']"), "GET", "https://api.example.com/a/../b").kind ==
        Kind::rewritten);
}

TEST_CASE("placeholders in paths and queries become encoded values") {
    const auto vault = substituting("'path','query'");
    const Injection made =
        ask(*vault, "GET", "https://api.example.com/bot__KEY__/__KEY__?k=__KEY__&x=__key__");
    CHECK(made.target == "/bots3%20c%2Fr%2Bt/s3%20c%2Fr%2Bt?k=s3%20c%2Fr%2Bt&x=__key__");
    CHECK(text(made) == "-");
    CHECK_FALSE(ask(*vault, "GET", "https://api.example.com/none").target.has_value());
    const Injection path_only =
        ask(*substituting("'path'"), "GET", "https://api.example.com/__KEY__?k=__KEY__");
    CHECK(path_only.target == "/s3%20c%2Fr%2Bt?k=__KEY__");
    const Injection query_only =
        ask(*substituting("'query'"), "GET", "https://api.example.com/__KEY__?k=__KEY__");
    CHECK(query_only.target == "/__KEY__?k=s3%20c%2Fr%2Bt");
}

TEST_CASE("a value that climbs out of its path is refused") {
    const auto vault = substituting("'path'", "../admin");
    const Injection refused = ask(*vault, "GET", "https://api.example.com/v1/__KEY__");
    CHECK(refused.kind == Kind::refused);
    CHECK(refused.status == 403);
    CHECK(refused.text == "credential substitution makes an unsafe path");
    CHECK_FALSE(refused.target.has_value());
    CHECK(ask(*substituting("'path'", "."), "GET", "https://api.example.com/v1/.__KEY__").kind ==
          Kind::refused);
    CHECK(ask(*substituting("'path'", "a/b"), "GET", "https://api.example.com/v1/__KEY__").target ==
          "/v1/a%2Fb");
}

TEST_CASE("placeholders in headers are replaced before the credential is set") {
    const auto vault =
        test::active(credential("c", "s3cret") + "," + credential("d", "other"),
                     binding("b", "'hosts':['api.example.com']",
                             "'type':'bearer','credential':'d','substitutions':[{'credential':'c',"
                             "'placeholder':'__KEY__','in':['header']}]"));
    CHECK(text(ask(*vault, "GET", "https://api.example.com/",
                   {{"X-Token", "a __KEY__ b __KEY__"},
                    {"Authorization", "Token __KEY__"},
                    {"Host", "__KEY__"},
                    {"x-forwarded-for", "__KEY__"},
                    {"Sec-Fetch-Site", "__KEY__"},
                    {"Referer", "__KEY__"},
                    {":path", "__KEY__"}})) ==
          "X-Token: a s3cret b s3cret|Authorization: Bearer other|Host: __KEY__|"
          "x-forwarded-for: __KEY__|Sec-Fetch-Site: __KEY__|Referer: __KEY__|:path: __KEY__");
    const auto through = substituting("'header'", "s3cret");
    CHECK(text(ask(*through, "GET", "https://api.example.com/",
                   {{"Authorization", "Token __KEY__"}})) == "Authorization: Token s3cret");
    CHECK(text(ask(*through, "GET", "https://api.example.com/", {{"A", "b"}})) == "-");
}

TEST_CASE("bodies are encoded as their type wants") {
    const auto vault = substituting("'body'", "a\\\"b c&\\nd");
    const auto sent = [&](std::string_view type, std::string_view content) {
        Injection made =
            ask(*vault, "POST", "https://api.example.com/", {{"content-type", std::string(type)}});
        return body(made, content);
    };
    CHECK(sent("application/json", "{\"k\":\"__KEY__\"}") == "{\"k\":\"a\\\"b c&\\nd\"}");
    CHECK(sent("application/problem+JSON; charset=utf-8", "\"__KEY__\"") == "\"a\\\"b c&\\nd\"");
    CHECK(sent("application/x-www-form-urlencoded", "k=__KEY__&z=1") == "k=a%22b+c%26%0Ad&z=1");
    CHECK(sent("text/plain", "__KEY____KEY__") == "a\"b c&\nda\"b c&\nd");
    CHECK(sent("", "x__KEY_ __KEY__y") == "x__KEY_ a\"b c&\ndy");
}

TEST_CASE("bodies that would no longer fit their form are left") {
    const auto vault = substituting("'body'");
    const auto has_body = [&](const Headers& headers) {
        const Injection made = ask(*vault, "POST", "https://api.example.com/", headers);
        CHECK(made.kind == Kind::rewritten);
        return made.body.has_value();
    };
    CHECK_FALSE(has_body({{"Content-Encoding", "gzip"}}));
    CHECK_FALSE(has_body({{"Content-Encoding", "identity"}, {"content-encoding", "br"}}));
    CHECK_FALSE(has_body({{"Content-Type", "Multipart/Form-Data; boundary=x"}}));
    CHECK_FALSE(has_body({{"Content-Type", "application/grpc+proto"}}));
    CHECK(has_body({{"Content-Encoding", "identity"}, {"Content-Type", "application/json"}}));
    const Injection no_body = ask(*substituting("'query'"), "POST", "https://api.example.com/");
    CHECK_FALSE(no_body.body.has_value());
}
