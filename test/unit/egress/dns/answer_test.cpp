#include "dns_fixture.hpp"

using namespace opensandbox;
using namespace opensandbox::egress::dns;
using namespace opensandbox::egress::dns::test;

namespace {

/// HTTPS record data: priority 1, target ".", these parameters.
std::string service(const std::vector<std::pair<int, std::string>>& parameters) {
    std::string data;
    codec::put_word(data, 1);
    data += '\0';
    for (const auto& [key, value] : parameters) {
        codec::put_word(data, static_cast<std::uint32_t>(key));
        codec::put_word(data, static_cast<std::uint32_t>(value.size()));
        data += value;
    }
    return data;
}

std::vector<std::string> texts(const Answer& answer) {
    std::vector<std::string> out;
    for (const AnswerAddress& each : answer.addresses)
        out.push_back(each.address.to_string());
    return out;
}

}  // namespace

TEST_CASE("dns answer: records of names that the question does not lead to are left out") {
    const auto answer = make_answer(
        response(
            "a.example", codec::kTypeA,
            {alias_record("A.Example", "b.example"), address_record("bank.example", "203.0.113.9"),
             address_record("c.example", "198.51.100.1"), alias_record("b.example", "c.example"),
             record("c.example", codec::kTypeTxt, "\3abc")}),
        AnswerRules());
    REQUIRE(answer);
    CHECK(texts(**answer) == std::vector<std::string>{"198.51.100.1"});
    CHECK((*answer)->chain == std::vector<std::string>{"a.example", "b.example", "c.example"});
    CHECK(parsed((*answer)->wire).answers.size() == 3);
}

TEST_CASE("dns answer: a loop of aliases is none, nor is an endless chain") {
    CHECK_FALSE(make_answer(
        response("a.example", codec::kTypeA,
                 {alias_record("a.example", "b.example"), alias_record("b.example", "a.example")}),
        AnswerRules()));
    CHECK_FALSE(
        make_answer(response("a.example", codec::kTypeA, {alias_record("a.example", "A.example")}),
                    AnswerRules()));
    std::vector<codec::ResourceRecord> chain;
    for (int i = 0; i < 30; ++i) {
        chain.push_back(alias_record("n" + std::to_string(i) + ".example",
                                     "n" + std::to_string(i + 1) + ".example"));
    }
    CHECK_FALSE(make_answer(response("n0.example", codec::kTypeA, chain), AnswerRules()));
    chain.resize(10);
    CHECK(make_answer(response("n0.example", codec::kTypeA, chain), AnswerRules()));
}

TEST_CASE("dns answer: failures are no answers") {
    for (const std::uint16_t code : {1, 2, 4, 5, 9, 16})
        CHECK_FALSE(make_answer(response("a.example", codec::kTypeA, {}, code), AnswerRules()));
}

TEST_CASE("dns answer: TTLs are kept within bounds, the whole as long as its shortest") {
    AnswerRules rules;
    rules.bounds.min_ttl = std::chrono::seconds(10);
    rules.bounds.max_ttl = std::chrono::seconds(300);
    const auto answer = make_answer(response("a.example", codec::kTypeA,
                                             {address_record("a.example", "198.51.100.1", 3),
                                              address_record("a.example", "198.51.100.2", 86400),
                                              address_record("a.example", "198.51.100.3", 100)}),
                                    rules);
    REQUIRE(answer);
    CHECK((*answer)->ttl == 10);
    std::vector<std::uint32_t> ttls;
    for (const auto& each : parsed((*answer)->wire).answers)
        ttls.push_back(each.ttl);
    CHECK(ttls == std::vector<std::uint32_t>{10, 300, 100});
    CHECK((*answer)->addresses[1].ttl == 300);
}

TEST_CASE("dns answer: what does not exist is kept by its SOA record, else not at all") {
    codec::Response none = response("a.example", codec::kTypeA, {}, 3);
    CHECK((*make_answer(none, AnswerRules()))->ttl == 0);
    none.authorities.push_back(soa_record("example", 900, 30));
    const auto kept = make_answer(none, AnswerRules());
    REQUIRE(kept);
    CHECK((*kept)->ttl == 30);
    CHECK((*kept)->code == 3);
    CHECK(parsed((*kept)->wire).authorities.size() == 1);
    none.authorities = {soa_record("example", 20, 900)};
    CHECK((*make_answer(none, AnswerRules()))->ttl == 20);
    none.authorities = {soa_record("example", 9000, 9000)};
    CHECK((*make_answer(none, AnswerRules()))->ttl == 60);
    none.code = 0;
    CHECK((*make_answer(none, AnswerRules()))->ttl == 60);
}

TEST_CASE("dns answer: hints for addresses and hidden names are taken out of service records") {
    AnswerRules rules;
    const auto with = [&](const std::string& data) {
        auto answer = make_answer(response("a.example", codec::kTypeHttps,
                                           {record("a.example", codec::kTypeHttps, data)}),
                                  rules);
        REQUIRE(answer);
        const auto read = parsed((*answer)->wire);
        return read.answers.empty() ? std::string() : read.answers[0].data;
    };
    const std::pair<int, std::string> alpn{1, "\2h2"};
    const std::pair<int, std::string> four{4, std::string(4, '\1')};
    const std::pair<int, std::string> ech{5, "hidden"};
    const std::pair<int, std::string> six{6, std::string(16, '\1')};
    CHECK(with(service({alpn, four, ech, six})) == service({alpn}));
    rules.strip_ech = false;
    CHECK(with(service({alpn, four, ech, six})) == service({alpn, ech}));
    SECTION("a record that is useless without them goes as a whole") {
        CHECK(with(service({{0, std::string("\0\4", 2)}, alpn, four})).empty());
        CHECK_FALSE(with(service({{0, std::string("\0\1", 2)}, alpn, four})).empty());
    }
    SECTION("so does a malformed one") {
        CHECK(with(service({alpn}) + "x").empty());
        CHECK(with("\1").empty());
    }
}

TEST_CASE("dns answer: inner addresses are taken out but for those allowed") {
    const auto answer = make_answer(
        response("a.example", codec::kTypeA,
                 {alias_record("a.example", "b.example"), address_record("b.example", "10.0.0.1"),
                  address_record("b.example", "198.51.100.1"),
                  address_record("b.example", "169.254.169.254")}),
        AnswerRules());
    REQUIRE(answer);
    CHECK((*answer)->inner);
    const auto none = [](const asio::ip::address&) { return false; };
    const auto filtered = without_inner(*answer, none);
    CHECK(filtered.removed == 2);
    CHECK_FALSE(filtered.emptied);
    CHECK(texts(*filtered.answer) == std::vector<std::string>{"198.51.100.1"});
    CHECK(addresses(filtered.answer->wire) == std::vector<std::string>{"198.51.100.1"});
    CHECK(filtered.answer->ttl == (*answer)->ttl);
    const auto partly = without_inner(
        *answer, [](const asio::ip::address& a) { return a.to_string() == "10.0.0.1"; });
    CHECK(partly.removed == 1);
    CHECK(texts(*partly.answer) == std::vector<std::string>{"10.0.0.1", "198.51.100.1"});
}

TEST_CASE("dns answer: one of which nothing is left says so") {
    const auto answer = make_answer(
        response("a.example", codec::kTypeAaaa, {address_record("a.example", "::ffff:10.0.0.1")}),
        AnswerRules());
    REQUIRE(answer);
    CHECK(without_inner(*answer, [](const asio::ip::address&) { return false; }).emptied);
    CHECK_FALSE(without_inner(*answer, [](const asio::ip::address&) { return true; }).emptied);
}

TEST_CASE("dns answer: DNSSEC records come to those who ask for them") {
    std::string signature(18, '\1');
    signature += wire("example") + "signature";
    codec::Response signed_response = response("a.example", codec::kTypeA,
                                               {address_record("a.example", "198.51.100.1"),
                                                record("a.example", codec::kTypeRrsig, signature)});
    signed_response.authentic = true;
    AnswerRules rules;
    CHECK(parsed((*make_answer(signed_response, rules))->wire).answers.size() == 1);
    CHECK_FALSE(parsed((*make_answer(signed_response, rules))->wire).authentic);
    rules.dnssec = true;
    CHECK(parsed((*make_answer(signed_response, rules))->wire).answers.size() == 2);
    CHECK(parsed((*make_answer(signed_response, rules))->wire).authentic);
}
