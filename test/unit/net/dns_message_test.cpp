#include "net/dns/message.hpp"
#include "net/dns/resolver_settings.hpp"
#include "support/catch_result.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::net::dns;

namespace {

const auto v4 = boost::asio::ip::make_address("192.0.2.7");
const auto v6 = boost::asio::ip::make_address("2001:db8::7");

std::string bytes(std::initializer_list<int> values) {
    std::string out;
    for (const int value : values)
        out += static_cast<char>(value);
    return out;
}

std::string label(std::string_view text) {
    return static_cast<char>(text.size()) + std::string(text);
}

/// Header of a query with one question, then the name of "Web.Example", and type A.
std::string question_for_web() {
    return bytes({0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}) + label("Web") + label("Example") +
           bytes({0, 0, 1, 0, 1});
}

}  // namespace

TEST_CASE("a query is read: id, name in lower case, type, what the client takes") {
    const auto plain = parse_query(question_for_web());
    REQUIRE(plain);
    CHECK(plain->id == 0x1234);
    CHECK(plain->question.name == "web.example");
    CHECK(plain->question.type == kTypeA);
    CHECK(plain->question.dns_class == kClassInternet);
    CHECK(plain->question_end == question_for_web().size());
    CHECK(plain->udp_size == 512);

    std::string extended = question_for_web();
    extended[11] = 1;
    extended += bytes({0, 0, 41, 4, 0xd0, 0, 0, 0, 0, 0, 0});
    const auto larger = parse_query(extended);
    REQUIRE(larger);
    CHECK(larger->udp_size == 1232);
}

TEST_CASE("bytes that are no letters stay apart from those that are") {
    std::string query = bytes({0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}) + label("a.b") +
                        label("\x01\\") + bytes({0, 0, 1, 0, 1});
    CHECK(parse_query(query)->question.name == "a\\.b.\\001\\\\");
}

TEST_CASE("what is no query with one question is refused") {
    const std::string good = question_for_web();
    CHECK_FALSE(parse_query(""));
    CHECK_FALSE(parse_query(good.substr(0, 11)));
    CHECK_FALSE(parse_query(good.substr(0, good.size() - 1)));
    const auto with = [&](std::size_t at, int value) {
        std::string changed = good;
        changed[at] = static_cast<char>(value);
        return changed;
    };
    CHECK_FALSE(parse_query(with(2, 0x81)));   // a response
    CHECK_FALSE(parse_query(with(2, 0x11)));   // another operation
    CHECK_FALSE(parse_query(with(5, 2)));      // two questions
    CHECK_FALSE(parse_query(with(7, 1)));      // an answer
    CHECK_FALSE(parse_query(with(12, 0x43)));  // a label of a kind that was never used
    CHECK_FALSE(parse_query(with(12, 63)));    // a label beyond the end
}

TEST_CASE("a question has no pointers, not even into itself") {
    const std::string head = bytes({0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0});
    // The pointer leads to a label that begins in the middle of the first.
    CHECK_FALSE(parse_query(head + bytes({4, 10, 0, 1, 'a', 0xc0, 15, 0, 0, 1, 0, 1})));
    CHECK_FALSE(parse_query(head + bytes({2, 0, 0, 0xc0, 13, 0, 1, 0, 1})));
    CHECK(parse_query(head + bytes({2, 0, 0, 0, 0, 1, 0, 1})));
}

TEST_CASE("pointers lead backwards only, so that reading ends") {
    const std::string head = bytes({0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0});
    CHECK_FALSE(parse_query(head + bytes({0xc0, 12, 0, 1, 0, 1})));
    CHECK_FALSE(parse_query(head + bytes({0xc0, 0, 0, 1, 0, 1})));
    CHECK_FALSE(parse_query(head + bytes({0xc0, 14, 0, 0, 1, 0, 1})));
    CHECK_FALSE(parse_query(head + label("a") + bytes({0xc0, 12, 0, 1, 0, 1})));
}

TEST_CASE("names have at most 255 bytes") {
    const std::string head = bytes({0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0});
    std::string longest;
    for (int i = 0; i < 3; ++i)
        longest += label(std::string(63, 'x'));
    CHECK(parse_query(head + longest + label(std::string(61, 'x')) + bytes({0, 0, 1, 0, 1})));
    CHECK_FALSE(parse_query(head + longest + label(std::string(62, 'x')) + bytes({0, 0, 1, 0, 1})));
}

TEST_CASE(
    "a response of ours is one that clients read: question, addresses of the kind asked for") {
    const std::string message = question_for_web();
    const auto query = parse_query(message);
    const std::string text = make_address_reply(message, *query, {v4, v6, v4}, 60, kPlainUdp);
    const auto reply = parse_reply(text);
    REQUIRE(reply);
    CHECK(reply->id == 0x1234);
    CHECK(reply->question == query->question);
    CHECK(reply->code == ResponseCode::no_error);
    REQUIRE(reply->answers.size() == 2);
    CHECK(reply->answers[0].name == "web.example");
    CHECK(reply->answers[0].address == v4);
    CHECK(reply->answers[0].ttl == 60);

    std::string wanting_v6 = message;
    wanting_v6[message.size() - 3] = kTypeAaaa;
    const auto other = parse_reply(
        make_address_reply(wanting_v6, *parse_query(wanting_v6), {v4, v6}, 60, kPlainUdp));
    REQUIRE(other->answers.size() == 1);
    CHECK(other->answers[0].address == v6);

    const std::vector<boost::asio::ip::address> many(1000, v4);
    CHECK(make_address_reply(message, *query, many, 60, kPlainUdp).size() <= kPlainUdp);
    CHECK(parse_reply(make_reply(message, *query, ResponseCode::server_failure))->code ==
          ResponseCode::server_failure);
}

TEST_CASE("only an answer to this question under this id counts") {
    const std::string message = question_for_web();
    const auto query = parse_query(message);
    const std::string reply = make_reply(message, *query, ResponseCode::no_error);
    CHECK(answers(reply, 0x1234, query->question));
    CHECK_FALSE(answers(reply, 0x1235, query->question));
    CHECK_FALSE(answers(message, 0x1234, query->question));
    Question other = query->question;
    other.name = "other.example";
    CHECK_FALSE(answers(reply, 0x1234, other));
    CHECK(answers(with_id(reply, 7), 7, query->question));
}

TEST_CASE("what a client does not take over UDP is cut and marked") {
    const std::string message = question_for_web();
    const auto query = parse_query(message);
    const std::vector<boost::asio::ip::address> many(100, v4);
    const std::string full = make_address_reply(message, *query, many, 60, kMaxMessage);
    REQUIRE(full.size() > kPlainUdp);
    const std::string cut = fit_udp(full, *query);
    CHECK(cut.size() == message.size());
    const auto reply = parse_reply(cut);
    REQUIRE(reply);
    CHECK(reply->truncated);
    CHECK(reply->answers.empty());
    CHECK(fit_udp(cut, *query) == cut);
}

TEST_CASE("resolv.conf: servers in order, the last search list, options, comments left out") {
    const auto settings = parse_resolver_settings(
        "# made by hand\nnameserver 127.0.0.53 ; stub\nnameserver bogus\ndomain old.example\n"
        "search Lan. example.org\noptions edns0 ndots:2\nnameserver 2001:db8::1\n"
        "nameserver 192.0.2.1\nnameserver 192.0.2.2\n");
    REQUIRE(settings.servers.size() == 3);
    CHECK(settings.servers[0].to_string() == "127.0.0.53");
    CHECK(settings.servers[1].to_string() == "2001:db8::1");
    CHECK(settings.search == std::vector<std::string>{"lan", "example.org"});
    CHECK(settings.options == std::vector<std::string>{"edns0", "ndots:2"});
    CHECK(parse_resolver_settings("").servers.empty());
}
