#include "egress/vault/literal_replacer.hpp"

#include "egress/vault/redactor.hpp"
#include "egress/vault/value_encoding.hpp"
#include "unit/egress/vault/vaults.hpp"

using namespace opensandbox::egress;

namespace {

std::string streamed(const std::shared_ptr<const LiteralReplacements>& replacements,
                     std::string_view text, std::size_t step) {
    StreamReplacer replacer(replacements);
    std::string out;
    for (std::size_t i = 0; i < text.size(); i += step) {
        replacer.feed(text.substr(i, step), out);
    }
    replacer.finish(out);
    return out;
}

Credential secret(std::string_view value) {
    Credential credential;
    credential.name = "c";
    credential.secret = std::make_shared<const Secret>(value);
    return credential;
}

}  // namespace

TEST_CASE("texts are replaced in one pass, the longest first") {
    const auto replacements = [] {
        auto made = std::make_shared<LiteralReplacements>();
        made->add("ab", "<abc>");
        made->add("abc", "[ab]");
        made->add("ab", "never");
        made->add("x", "");
        return made;
    }();
    std::string out;
    CHECK(replacements->replace("abcabxab", out) == 4);
    CHECK(out == "[ab]<abc><abc>");
    CHECK(replacements->longest() == 3);
}

TEST_CASE("pieces of any size give what the whole gives") {
    auto made = std::make_shared<LiteralReplacements>();
    made->add("secret", "[REDACTED]");
    made->add("secretive", "S");
    made->add("ss", "2");
    const std::string text = "a secret, secrets, secretiv secretive sssecret ssss se secre";
    std::string whole;
    (void)made->replace(text, whole);
    CHECK(whole == "a [REDACTED], [REDACTED]s, [REDACTED]iv S 2[REDACTED] 22 se secre");
    for (std::size_t step = 1; step <= text.size(); ++step) {
        if (streamed(made, text, step) != whole) FAIL(step);
    }
}

TEST_CASE("a stream holds back no more than a part of a secret") {
    auto made = std::make_shared<LiteralReplacements>();
    made->add("0123456789", "x");
    StreamReplacer replacer(made);
    std::string out;
    replacer.feed("data: hello\n\n", out);
    CHECK(out == "data: hello\n\n");
    replacer.feed("01234", out);
    CHECK(out == "data: hello\n\n");
    replacer.feed("!", out);
    CHECK(out == "data: hello\n\n01234!");
}

TEST_CASE("values are encoded for where they stand") {
    CHECK(encode_for_url("a b/\xc3\xbc~.-_&") == "a%20b%2F%C3%BC~.-_%26");
    CHECK(encode_for_form("a b+") == "a+b%2B");
    CHECK(encode_for_json("a\"\\\n\xc3\xbc") == "a\\\"\\\\\\n\xc3\xbc");
    CHECK(encode_for_json("").empty());
}

TEST_CASE("secrets are taken out of responses in all their forms") {
    const Redactor redactor({secret("p@ss \"word\"")}, {});
    CHECK(redactor.redact("X-Echo", "Bearer p@ss \"word\"!") == "Bearer [REDACTED]!");
    CHECK(redactor.redact("Location", "/?k=p%40ss%20%22word%22&l=p%40ss+%22word%22") ==
          "/?k=[REDACTED]&l=[REDACTED]");
    CHECK(redactor.redact("X-Json", R"({"k":"p@ss \"word\""})") == R"({"k":"[REDACTED]"})");
    CHECK_FALSE(redactor.redact("X-Echo", "nothing").has_value());
    StreamReplacer body = redactor.body();
    std::string out;
    body.feed("<p@ss \"wo", out);
    body.feed("rd\">", out);
    body.finish(out);
    CHECK(out == "<[REDACTED]>");
}

TEST_CASE("short credentials and framing headers are left, placeholders are not") {
    Binding binding;
    binding.auth.substitutions.emplace_back();
    binding.auth.substitutions.back().placeholder = "__KEY__";
    const Redactor redactor({secret("abc"), secret("1234")}, {binding});
    CHECK_FALSE(redactor.redact("X-Echo", "abc").has_value());
    CHECK_FALSE(redactor.redact("Content-Length", "1234").has_value());
    CHECK(redactor.redact("X-Echo", "1234") == "[REDACTED]");
    CHECK(redactor.redact("X-Echo", "k=__KEY__") == "k=[REDACTED]");
}

TEST_CASE("a wiped text leaves nothing in its memory") {
    std::string text = "a secret that is longer than a small string holds";
    text.resize(8);
    const char* memory = text.data();
    const std::size_t capacity = text.capacity();
    wipe(text);
    CHECK(text.empty());
    CHECK(text.capacity() == capacity);
    CHECK(std::string_view(memory, capacity).find_first_not_of('\0') == std::string_view::npos);
}

TEST_CASE("the password within a basic credential is a secret, too") {
    Binding binding;
    binding.auth.type = AuthType::basic;
    binding.auth.headers.emplace_back();
    binding.auth.headers.back().credential = "c";
    const Redactor redactor({secret("dXNlcjpwYXNzd29yZA==")}, {binding});
    CHECK(redactor.redact("X-Echo", "dXNlcjpwYXNzd29yZA==") == "[REDACTED]");
    CHECK(redactor.redact("X-Echo", "user:password") == "[REDACTED]");
    CHECK(redactor.redact("X-Echo", "it is password") == "it is [REDACTED]");
    CHECK_FALSE(redactor.redact("X-Echo", "user").has_value());
    const Redactor bearer({secret("dXNlcjpwYXNzd29yZA==")}, {});
    CHECK_FALSE(bearer.redact("X-Echo", "user:password").has_value());
}
