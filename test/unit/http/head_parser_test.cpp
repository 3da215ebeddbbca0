#include "http/head_parser.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox::http;
using Kind = Framing::Kind;

namespace {

/// The status a head is refused with, 0 when it is taken; `head` gets its final empty line here.
int refusal_of(const std::string& lines, RequestHead* out = nullptr, Framing* framing = nullptr) {
    std::string bytes = lines + "\r\n";
    HeadScanner scanner;
    auto state = scanner.scan(bytes);
    if (state == HeadScanner::State::malformed) return 400;
    REQUIRE(state == HeadScanner::State::complete);
    RequestHead head;
    Framing found;
    auto refusal = parse_request_head(std::string_view(bytes).substr(0, scanner.size()), head);
    if (!refusal) refusal = request_framing(head, found);
    if (out != nullptr) *out = head;
    if (framing != nullptr) *framing = found;
    return refusal ? refusal->status : 0;
}

int refusal_of_fields(const std::string& fields) {
    return refusal_of("POST / HTTP/1.1\r\nHost: h\r\n" + fields);
}

}  // namespace

TEST_CASE("a request head is taken apart", "[http][parser]") {
    RequestHead head;
    REQUIRE(refusal_of("PATCH /a?b HTTP/1.1\r\nHost: h:1\r\nEmpty:\r\nX:  y z \t\r\n", &head) == 0);
    CHECK(head.method == "PATCH");
    CHECK(head.target == "/a?b");
    CHECK(head.minor_version == 1);
    CHECK(head.fields.get("Empty") == std::string_view(""));
    CHECK(head.fields.get("X") == std::string_view("y z"));
}

TEST_CASE("malformed request lines are refused", "[http][parser]") {
    auto line = GENERATE("GET /", "GET / ", "GET  HTTP/1.1", "GET /a b HTTP/1.1", "GET / HTTP/1.1 ",
                         " GET / HTTP/1.1", "G@T / HTTP/1.1", "GET / http/1.1", "GET / HTTP/1.x",
                         "GET / HTTP/11", "GET\t/\tHTTP/1.1", "GET x HTTP/1.1", "GET * HTTP/1.1",
                         "GET ftp://h/ HTTP/1.1", "GET http:///x HTTP/1.1", "CONNECT h:1 HTTP/1.1");
    CAPTURE(line);
    CHECK(refusal_of(std::string(line) + "\r\nHost: h\r\n") == 400);
}

TEST_CASE("a method of more than 32 characters is refused", "[http][parser]") {
    CHECK(refusal_of(std::string(33, 'A') + " / HTTP/1.1\r\nHost: h\r\n") == 400);
    CHECK(refusal_of(std::string(32, 'A') + " / HTTP/1.1\r\nHost: h\r\n") == 0);
}

TEST_CASE("other major versions get 505, later minor ones are taken", "[http][parser]") {
    CHECK(refusal_of("GET / HTTP/2.0\r\nHost: h\r\n") == 505);
    CHECK(refusal_of("GET / HTTP/1.9\r\nHost: h\r\n") == 0);
}

TEST_CASE("bytes that split parsers apart are refused", "[http][parser]") {
    CHECK(refusal_of("GET / HTTP/1.1\nHost: h\r\n") == 400);
    CHECK(refusal_of_fields("A: b\nC: d\r\n") == 400);
    CHECK(refusal_of_fields("A: b\rC: d\r\n") == 400);
    CHECK(refusal_of_fields("A: b\r\r\n") == 400);
    CHECK(refusal_of_fields(std::string("A: b\0c\r\n", 8)) == 400);
    CHECK(refusal_of_fields("A: b\x7f\r\n") == 400);
    CHECK(refusal_of(std::string("GET /\0 HTTP/1.1\r\nHost: h\r\n", 26)) == 400);
    CHECK(refusal_of_fields("A : b\r\n") == 400);
    CHECK(refusal_of_fields(": b\r\n") == 400);
    CHECK(refusal_of_fields("A b\r\n") == 400);
    CHECK(refusal_of_fields("A: b\r\n folded\r\n") == 400);
    CHECK(refusal_of_fields("A: b\r\n\tfolded\r\n") == 400);
    CHECK(refusal_of("GET / HTTP/1.1\r\n Host: h\r\n") == 400);
    CHECK(refusal_of_fields("A\xC3\xA4: b\r\n") == 400);
}

TEST_CASE("bytes above ASCII may stand in values and targets", "[http][parser]") {
    CHECK(refusal_of("GET /\xC3\xA4 HTTP/1.1\r\nHost: h\r\nA: \xC3\xA4\r\n") == 0);
}

TEST_CASE("exactly one Host is required", "[http][parser]") {
    CHECK(refusal_of("GET / HTTP/1.1\r\nA: b\r\n") == 400);
    CHECK(refusal_of("GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n") == 400);
    CHECK(refusal_of("GET / HTTP/1.0\r\nA: b\r\n") == 0);
}

TEST_CASE("an absolute target becomes origin form and names the host", "[http][parser]") {
    RequestHead head;
    REQUIRE(refusal_of("GET http://real:81/x?y HTTP/1.1\r\nHost: other\r\n", &head) == 0);
    CHECK(head.target == "/x?y");
    CHECK(head.fields.get("Host") == std::string_view("real:81"));
    REQUIRE(refusal_of("GET http://real HTTP/1.1\r\nHost: other\r\n", &head) == 0);
    CHECK(head.target == "/");
    REQUIRE(refusal_of("GET http://real?q HTTP/1.1\r\nHost: other\r\n", &head) == 0);
    CHECK(head.target == "/?q");
    CHECK(refusal_of("OPTIONS * HTTP/1.1\r\nHost: h\r\n", &head) == 0);
    CHECK(head.target == "*");
}

TEST_CASE("too many fields get 431", "[http][parser]") {
    std::string fields;
    for (std::size_t i = 0; i < kMaxFieldCount - 1; ++i)
        fields += "A: b\r\n";
    CHECK(refusal_of_fields(fields) == 0);
    CHECK(refusal_of_fields(fields + "A: b\r\n") == 431);
}

TEST_CASE("framing that smuggles is refused", "[http][parser]") {
    CHECK(refusal_of_fields("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n") == 400);
    CHECK(refusal_of_fields("Content-Length: 3\r\nContent-Length: 4\r\n") == 400);
    CHECK(refusal_of_fields("Content-Length: 3, 3\r\n") == 400);
    CHECK(refusal_of_fields("Content-Length: +3\r\n") == 400);
    CHECK(refusal_of_fields("Content-Length: -3\r\n") == 400);
    CHECK(refusal_of_fields("Content-Length: 0x3\r\n") == 400);
    CHECK(refusal_of_fields("Content-Length: 3 4\r\n") == 400);
    CHECK(refusal_of_fields("Content-Length:\r\n") == 400);
    CHECK(refusal_of_fields("Content-Length: 99999999999999999999\r\n") == 400);
    CHECK(refusal_of_fields("Content-Length: 18446744073709551615\r\n") == 400);
    CHECK(refusal_of_fields("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n") == 400);
    CHECK(refusal_of_fields("Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n") ==
          400);
    CHECK(refusal_of_fields("Transfer-Encoding: gzip, chunked\r\n") == 501);
    CHECK(refusal_of_fields("Transfer-Encoding: xchunked\r\n") == 501);
    CHECK(refusal_of_fields("Transfer-Encoding:\r\n") == 501);
    CHECK(refusal_of("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n") == 400);
}

TEST_CASE("framing of sound requests is found", "[http][parser]") {
    Framing framing;
    std::string post = "POST / HTTP/1.1\r\nHost: h\r\n";
    CHECK(refusal_of(post, nullptr, &framing) == 0);
    CHECK(framing.kind == Kind::none);
    CHECK(refusal_of(post + "Content-Length: 7\r\ncontent-length: 7\r\n", nullptr, &framing) == 0);
    CHECK(framing.kind == Kind::length);
    CHECK(framing.length == 7);
    CHECK(refusal_of(post + "Transfer-Encoding: Chunked\r\n", nullptr, &framing) == 0);
    CHECK(framing.kind == Kind::chunked);
}

TEST_CASE("the end of a head is found whatever pieces it comes in", "[http][parser]") {
    std::string bytes = "GET / HTTP/1.1\r\nHost: h\r\n\r\nrest";
    for (std::size_t step = 1; step < bytes.size(); ++step) {
        HeadScanner scanner;
        auto state = HeadScanner::State::incomplete;
        for (std::size_t end = step; state == HeadScanner::State::incomplete; end += step) {
            state = scanner.scan(std::string_view(bytes).substr(0, end));
        }
        CHECK(state == HeadScanner::State::complete);
        CHECK(scanner.size() == bytes.size() - 4);
    }
}

namespace {

Framing framing_of(const std::string& lines, std::string_view method = "GET") {
    ParsedResponse response;
    auto reason = parse_response_head(lines + "\r\n", response);
    CAPTURE(reason.value_or(""));
    REQUIRE_FALSE(reason);
    Framing framing;
    auto unframed = response_framing(response, method, framing);
    CAPTURE(unframed.value_or(""));
    REQUIRE_FALSE(unframed);
    return framing;
}

}  // namespace

TEST_CASE("the framing of responses follows status and method", "[http][parser]") {
    CHECK(framing_of("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n").kind == Kind::length);
    CHECK(framing_of("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n").kind == Kind::none);
    CHECK(framing_of("HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n").kind == Kind::chunked);
    CHECK(framing_of("HTTP/1.0 200 \r\n").kind == Kind::until_close);
    CHECK(framing_of("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n", "HEAD").kind == Kind::none);
    CHECK(framing_of("HTTP/1.1 204 No Content\r\n").kind == Kind::none);
    CHECK(framing_of("HTTP/1.1 304 x\r\nContent-Length: 5\r\n").kind == Kind::none);
    CHECK(framing_of("HTTP/1.1 101 x\r\n").kind == Kind::none);
}

TEST_CASE("malformed responses are refused", "[http][parser]") {
    auto lines = GENERATE("HTTP/1.1 20 OK\r\n", "HTTP/1.1 2000 OK\r\n", "HTTP/2.0 200 OK\r\n",
                          "ICY 200 OK\r\n", "HTTP/1.1 099 x\r\n", "HTTP/1.1 200 OK\r\nA : b\r\n",
                          "HTTP/1.1\r\n", "\r\n", "HTTP/1.1 200 a\rb\r\n");
    CAPTURE(lines);
    ParsedResponse response;
    CHECK(parse_response_head(std::string(lines) + "\r\n", response));
}

TEST_CASE("contradicting framing of responses is refused", "[http][parser]") {
    auto lines = GENERATE("Content-Length: 3\r\nContent-Length: 4\r\n",
                          "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
                          "Transfer-Encoding: gzip\r\n", "Content-Length: x\r\n");
    ParsedResponse response;
    REQUIRE_FALSE(
        parse_response_head("HTTP/1.1 200 OK\r\n" + std::string(lines) + "\r\n", response));
    Framing framing;
    CHECK(response_framing(response, "GET", framing));
}

TEST_CASE("keeping a connection follows version and Connection field", "[http][parser]") {
    CHECK(keeps_alive({}, 1));
    CHECK_FALSE(keeps_alive({}, 0));
    Fields close{{"Connection", "x, Close"}};
    Fields keep{{"Connection", "Keep-Alive"}};
    CHECK_FALSE(keeps_alive(close, 1));
    CHECK(keeps_alive(keep, 0));
}
