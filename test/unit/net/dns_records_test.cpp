#include "net/dns/records.hpp"
#include "net/dns/wire_reader.hpp"
#include "support/catch_result.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::net::dns;

namespace {

std::string bytes(std::initializer_list<int> values) {
    std::string out;
    for (const int value : values)
        out += static_cast<char>(value);
    return out;
}

std::string wire(std::initializer_list<std::string_view> labels) {
    std::string out;
    for (const auto label : labels) {
        out += static_cast<char>(label.size());
        out += label;
    }
    return out + '\0';
}

ResourceRecord record(std::string owner, std::uint16_t type, std::string data) {
    ResourceRecord made;
    made.owner = std::move(owner);
    made.type = type;
    made.dns_class = kClassInternet;
    made.ttl = 300;
    made.data = std::move(data);
    return made;
}

Response web() {
    Response response;
    response.name = wire({"www", "Example"});
    response.type = kTypeA;
    response.dns_class = kClassInternet;
    return response;
}

/// Header with so many answers, then the question "x. A".
std::string head(int answers) {
    return bytes({0, 9, 0x81, 0x80, 0, 1, 0, answers, 0, 0, 0, 0, 1, 'x', 0, 0, 1, 0, 1});
}

}  // namespace

TEST_CASE("a response survives being written and read, and names in it are compressed") {
    Response response = web();
    response.code = 3;
    response.authentic = true;
    response.answers.push_back(
        record(wire({"WWW", "example"}), kTypeCname, wire({"cdn", "example"})));
    response.answers.push_back(record(wire({"cdn", "example"}), kTypeA, bytes({192, 0, 2, 1})));
    const std::string soa =
        wire({"ns", "example"}) + wire({"host", "example"}) + std::string(20, '\1');
    response.authorities.push_back(record(wire({"example"}), kTypeSoa, soa));
    response.answers.push_back(
        record(wire({"www", "example"}), kTypeSrv, bytes({0, 1, 0, 2, 0, 3}) + wire({"example"})));
    const auto encoded = encode_response(response);
    REQUIRE(encoded);
    CHECK(encoded->ttl_offsets.size() == 4);
    CHECK(encoded->bytes.size() < 150);
    const auto read = parse_response(encoded->bytes);
    REQUIRE(read);
    CHECK(read->code == 3);
    CHECK(read->authentic);
    CHECK(same_name(read->name, response.name));
    REQUIRE(read->answers.size() == 3);
    // Its name was pointed to, letters as in the question.
    CHECK(read->answers[0].owner == wire({"www", "Example"}));
    CHECK(same_name(read->answers[0].data, wire({"cdn", "example"})));
    CHECK(read->answers[1].data == bytes({192, 0, 2, 1}));
    CHECK(read->answers[2].data == bytes({0, 1, 0, 2, 0, 3}) + wire({"example"}));
    REQUIRE(read->authorities.size() == 1);
    CHECK(same_name(read->authorities[0].data, soa));
    for (const std::uint16_t offset : encoded->ttl_offsets) {
        WireReader reader(encoded->bytes, offset);
        CHECK(reader.long_word() == 300);
    }
}

TEST_CASE("pointers in the data of records are resolved, so that records stand by themselves") {
    const std::string message =
        head(1) + bytes({0xc0, 12, 0, 15, 0, 1, 0, 0, 0, 5, 0, 7, 0, 10, 2, 'm', 'x', 0xc0, 12});
    const auto read = parse_response(message);
    REQUIRE(read);
    REQUIRE(read->answers.size() == 1);
    CHECK(read->answers[0].data == bytes({0, 10}) + wire({"mx", "x"}));
    CHECK(read->answers[0].ttl == 5);
}

TEST_CASE("responses that are no good are refused") {
    const std::string a = bytes({0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, 1, 2, 3, 4});
    REQUIRE(parse_response(head(1) + a));
    CHECK_FALSE(parse_response(head(2) + a));
    CHECK_FALSE(parse_response(head(1) + a.substr(0, a.size() - 1)));
    std::string wrong = a;
    SECTION("a pointer to itself") {
        wrong[1] = 19;
    }
    SECTION("a pointer forward") {
        wrong[1] = 60;
    }
    SECTION("a pointer into the header") {
        wrong[1] = 4;
    }
    SECTION("an address of the wrong size") {
        wrong = wrong.substr(0, 11) + bytes({3, 1, 2, 3});
    }
    SECTION("a name that ends beyond its data") {
        wrong = bytes({0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 5, 0, 1, 1, 'y', 0});
    }
    SECTION("a name that ends before its data") {
        wrong = bytes({0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 5, 0, 4, 1, 'y', 0, 7});
    }
    SECTION("an SOA record without its numbers") {
        wrong = bytes({0xc0, 12, 0, 6, 0, 1, 0, 0, 0, 5, 0, 2, 0, 0});
    }
    CHECK_FALSE(parse_response(head(1) + wrong));
}

TEST_CASE("a cut response is read as far as it goes") {
    std::string message =
        head(2) + bytes({0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, 1, 2, 3, 4, 0xc0});
    CHECK_FALSE(parse_response(message));
    message[2] = static_cast<char>(0x83);
    const auto read = parse_response(message);
    REQUIRE(read);
    CHECK(read->truncated);
    CHECK(read->answers.size() == 1);
}

TEST_CASE("an OPT record adds to the code, and a TTL with its top bit set is none") {
    std::string message = head(1) + bytes({0xc0, 12, 0, 1, 0, 1, 0x80, 0, 0, 5, 0, 4, 1, 2, 3, 4}) +
                          bytes({0, 0, 41, 4, 0, 1, 0, 0x80, 0, 0, 0});
    message[11] = 1;
    const auto read = parse_response(message);
    REQUIRE(read);
    CHECK(read->code == 16);
    CHECK(read->answers[0].ttl == 0);
}

TEST_CASE("too many records are refused before they are read") {
    std::string message = head(0);
    message[6] = 4;
    message[7] = 1;
    CHECK_FALSE(parse_response(message));
}

TEST_CASE("a query is made as it is read") {
    const auto plain = parse_query(make_query(77, wire({"a", "b"}), kTypeAaaa, 0, false, false));
    REQUIRE(plain);
    CHECK(plain->id == 77);
    CHECK(plain->question.name == "a.b");
    CHECK(plain->question.type == kTypeAaaa);
    CHECK_FALSE(plain->edns);
    CHECK_FALSE(plain->checking_disabled);
    const auto full = parse_query(make_query(77, wire({}), kTypeNs, 1400, true, true));
    REQUIRE(full);
    CHECK(full->question.name.empty());
    CHECK(full->edns);
    CHECK(full->dnssec_ok);
    CHECK(full->checking_disabled);
    CHECK(full->udp_size == 1400);
}

TEST_CASE("a query has one OPT record at the root at most") {
    std::string query = make_query(1, wire({"a"}), kTypeA, 1232, false, false);
    const std::string opt = query.substr(query.size() - 11);
    REQUIRE(parse_query(query));
    query[11] = 2;
    CHECK_FALSE(parse_query(query + opt));
    std::string elsewhere = make_query(1, wire({"a"}), kTypeA, 0, false, false);
    elsewhere[11] = 1;
    CHECK_FALSE(parse_query(elsewhere + wire({"a"}) + opt.substr(1)));
}
