#include "dns_fixture.hpp"

using namespace opensandbox;
using namespace opensandbox::egress::dns;
using namespace opensandbox::egress::dns::test;

namespace {

std::shared_ptr<const Answer> two_addresses() {
    auto answer = make_answer(response("a.example", codec::kTypeA,
                                       {address_record("a.example", "198.51.100.1", 100),
                                        address_record("a.example", "198.51.100.2", 200)}),
                              AnswerRules());
    REQUIRE(answer);
    return *answer;
}

}  // namespace

TEST_CASE("dns reply: TTLs count down, id, flags and letters are the query's") {
    std::string message =
        codec::make_query(0xbeef, wire("A.eXample"), codec::kTypeA, 0, false, true);
    message[2] = 0;
    const auto query = codec::parse_query(message);
    std::string reply;
    CHECK(write_answer(*two_addresses(), *query, message, 30, 512, reply));
    CHECK(reply.substr(12, 11) == wire("A.eXample"));
    const auto read = parsed(reply);
    CHECK(read.id == 0xbeef);
    CHECK(read.answers[0].ttl == 70);
    CHECK(read.answers[1].ttl == 170);
    CHECK(read.answers[0].owner == wire("A.eXample"));
    CHECK(static_cast<unsigned char>(reply[2]) == 0x80);
    CHECK(static_cast<unsigned char>(reply[3]) == 0x90);
    CHECK(write_answer(*two_addresses(), *query, message, 130, 512, reply));
    CHECK(parsed(reply).answers[0].ttl == 0);
}

TEST_CASE("dns reply: an OPT record comes back to who sent one") {
    const std::string message = query("a.example");
    const auto read = codec::parse_query(message);
    std::string reply;
    CHECK(write_answer(*two_addresses(), *read, message, 0, 512, reply));
    CHECK(reply[11] == 1);
    CHECK(reply.size() == two_addresses()->wire.size() + 11);
    CHECK(parsed(reply).answers.size() == 2);
}

TEST_CASE("dns reply: what is longer than the client takes is cut") {
    const std::string message = query("a.example");
    const auto read = codec::parse_query(message);
    const std::size_t size = two_addresses()->wire.size() + 11;
    std::string reply;
    CHECK(write_answer(*two_addresses(), *read, message, 0, size, reply));
    CHECK_FALSE(write_answer(*two_addresses(), *read, message, 0, size - 1, reply));
    CHECK(parsed(reply).truncated);
    CHECK(parsed(reply).answers.empty());
    CHECK(reply[11] == 1);
    CHECK(answer_limit(*read, true, 4096) == 65535);
    CHECK(answer_limit(*read, false, 4096) == 1232);
    CHECK(answer_limit(*read, false, 900) == 900);
    CHECK(answer_limit(*read, false, 0) == 512);
    CHECK(answer_limit(*codec::parse_query(query("a", 1, 0)), false, 4096) == 512);
}

TEST_CASE("dns reply: a long reason is cut between characters") {
    const std::string message = query("a.example");
    const auto read = codec::parse_query(message);
    std::string text(199, 'x');
    text += "\xc3\xa4";
    std::string reply;
    write_refusal(Refusal(codec::ResponseCode::refused, ExtendedError::blocked, text), *read,
                  message, reply);
    CHECK(explanation(reply).text == std::string(199, 'x'));
    CHECK(parsed(reply).code == 5);
}

TEST_CASE("dns reply: what is no query is answered as such, or not at all") {
    CHECK(malformed_reply("short").empty());
    const std::string good = query("a.example");
    std::string response = good;
    response[2] = static_cast<char>(0x80);
    CHECK(malformed_reply(response).empty());
    const std::string wrong = malformed_reply(good.substr(0, 14));
    REQUIRE(wrong.size() == 12);
    CHECK(wrong.substr(0, 2) == good.substr(0, 2));
    CHECK((wrong[3] & 0x0f) == 1);
    std::string update = good;
    update[2] = 0x28;
    CHECK((malformed_reply(update)[3] & 0x0f) == 4);
}
