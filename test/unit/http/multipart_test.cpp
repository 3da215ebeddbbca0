#include "http/multipart.hpp"

#include "support/body_text.hpp"
#include "support/event_loop.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::http;
using test_support::BodyText;
using test_support::Loop;

namespace {

struct Part {
    PartHead head;
    std::string content;
};

struct Parsed {
    std::vector<Part> parts;
    std::optional<Error> failure;
};

constexpr std::string_view kType = "multipart/form-data; boundary=XX";

/// Reads every part, the body coming in pieces of `piece` and asked for in pieces of `ask`.
Parsed parse(const std::string& body, std::size_t piece, std::size_t ask,
             std::string_view content_type = kType) {
    Loop loop;
    Parsed parsed;
    loop.run([&]() -> Awaitable<void> {
        BodyText reader(body, piece);
        auto multipart = MultipartReader::open(content_type, reader);
        if (!multipart) {
            parsed.failure = multipart.error();
            co_return;
        }
        std::string buffer(ask, '\0');
        while (true) {
            auto head = co_await multipart->next_part();
            if (!head) parsed.failure = head.error();
            if (!head || !*head) co_return;
            parsed.parts.push_back({**head, {}});
            while (true) {
                auto count = co_await multipart->read_some(buffer);
                if (!count) parsed.failure = count.error();
                if (!count || *count == 0) break;
                parsed.parts.back().content.append(buffer, 0, *count);
            }
            if (parsed.failure) co_return;
        }
    });
    return parsed;
}

std::string part(const std::string& disposition, const std::string& content) {
    return "--XX\r\nContent-Disposition: form-data; " + disposition + "\r\n\r\n" + content + "\r\n";
}

}  // namespace

TEST_CASE("parts come through whatever the pieces", "[http][multipart]") {
    std::string tricky = "\r\n--X\r\n--XY\r\r\n\r\n--\r\nend\r";
    std::string body = "preamble\r\n" + part("name=\"metadata\"; filename=\"metadata\"", "{}") +
                       part("name=file; filename=\"a.bin\"", tricky) + part("name=\"e\"", "") +
                       "--XX--\r\nepilogue";
    for (std::size_t piece : {1, 2, 3, 5, 7, 64, 10000}) {
        for (std::size_t ask : {1, 3, 4096}) {
            auto parsed = parse(body, piece, ask);
            REQUIRE_FALSE(parsed.failure);
            REQUIRE(parsed.parts.size() == 3);
            CHECK(parsed.parts[0].head.name == "metadata");
            CHECK(parsed.parts[0].content == "{}");
            CHECK(parsed.parts[1].head.name == "file");
            CHECK(parsed.parts[1].head.filename == std::string("a.bin"));
            CHECK(parsed.parts[1].content == tricky);
            CHECK(parsed.parts[2].content.empty());
            CHECK_FALSE(parsed.parts[2].head.filename);
        }
    }
}

TEST_CASE("a large binary part is streamed unchanged", "[http][multipart]") {
    std::string content;
    for (unsigned i = 0; i < 1'000'000; ++i)
        content += static_cast<char>((i * 7919) >> 5);
    auto parsed = parse(part("name=f", content) + "--XX--", 8191, 65536);
    REQUIRE(parsed.parts.size() == 1);
    CHECK(parsed.parts[0].content == content);
}

TEST_CASE("what was not read of a part is skipped", "[http][multipart]") {
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        BodyText reader(part("name=a", std::string(200'000, 'x')) + part("name=b", "y") + "--XX--",
                        1000);
        auto multipart = MultipartReader::open(kType, reader);
        REQUIRE(multipart.has_value());
        auto first = co_await multipart->next_part();
        REQUIRE(first.has_value());
        auto second = co_await multipart->next_part();
        REQUIRE(second.has_value());
        REQUIRE(second->has_value());
        CHECK((*second)->name == "b");
        auto third = co_await multipart->next_part();
        REQUIRE(third.has_value());
        CHECK_FALSE(third->has_value());
        auto fourth = co_await multipart->next_part();
        REQUIRE(fourth.has_value());
        CHECK_FALSE(fourth->has_value());
    });
}

TEST_CASE("a form without parts is empty", "[http][multipart]") {
    auto parsed = parse("--XX--\r\n", 1000, 100);
    CHECK_FALSE(parsed.failure);
    CHECK(parsed.parts.empty());
}

TEST_CASE("truncated or malformed forms are protocol errors", "[http][multipart]") {
    std::string fields = "--XX\r\nContent-Disposition: form-data; name=a\r\n";
    auto body = GENERATE_COPY(std::string(), std::string("no boundary at all"), std::string("--XX"),
                              std::string("--XX-"), fields, fields + "\r\ncontent",
                              fields + "\r\ncontent\r\n--X", std::string("--XXtrailing\r\n\r\n"),
                              std::string("--XX\r\nBad Header\r\n\r\nx\r\n--XX--"),
                              std::string("--XX\r\nA: b\n\r\nx\r\n--XX--"),
                              "--XX\r\nA: " + std::string(17'000, 'x') + "\r\n\r\n\r\n--XX--");
    CAPTURE(body.substr(0, 80));
    for (std::size_t piece : {1, 100000}) {
        auto parsed = parse(body, piece, 100);
        REQUIRE(parsed.failure);
        CHECK(parsed.failure->code() == ErrorCode::protocol);
    }
}

TEST_CASE("more than a thousand parts are refused", "[http][multipart]") {
    std::string body;
    for (int i = 0; i < 1000; ++i)
        body += part("name=a", "");
    CHECK_FALSE(parse(body + "--XX--", 4096, 100).failure);
    auto parsed = parse(body + part("name=a", "") + "--XX--", 4096, 100);
    REQUIRE(parsed.failure);
    CHECK(parsed.parts.size() == 1000);
}

TEST_CASE("a body must be a form and name its boundary", "[http][multipart]") {
    auto wrong =
        GENERATE("", "application/json", "multipart/form-data", "multipart/mixed; boundary=x",
                 "multipart/form-data; boundary=", "multipart/form-data; boundary=\"\"");
    CAPTURE(wrong);
    auto parsed = parse("--XX--", 100, 100, wrong);
    REQUIRE(parsed.failure);
    CHECK(parsed.failure->code() == ErrorCode::invalid_argument);
    CHECK_FALSE(
        parse("--X X--", 100, 100, "Multipart/Form-Data ; charset=x; BOUNDARY=\"X X\"").failure);
}

TEST_CASE("names and file names come in many spellings", "[http][multipart]") {
    auto value = [](std::string_view text) { return form_parameter(text, "filename"); };
    CHECK(value("form-data; name=\"a\"; filename=\"b.txt\"") == std::string("b.txt"));
    CHECK(value("form-data; filename=b.txt; name=a") == std::string("b.txt"));
    CHECK(value("form-data; filename=\"a\\\"b;c=\\\\d\"") == std::string("a\"b;c=\\d"));
    CHECK(value("form-data; filename=\"C:\\dir\\x\"") == std::string("C:\\dir\\x"));
    CHECK(value("form-data; filename=\"\xC3\xA4\"") == std::string("\xC3\xA4"));
    CHECK(value("form-data; filename=\"x\"; filename*=UTF-8''%C3%A4%20b") ==
          std::string("\xC3\xA4 b"));
    CHECK(value("form-data; filename*=utf-8'en'z; filename=\"x\"") == std::string("z"));
    CHECK(value("form-data; filename*=latin1''z; filename=\"x\"") == std::string("x"));
    CHECK(value("form-data; filename*=UTF-8''%zz; filename=\"x\"") == std::string("x"));
    CHECK(value("form-data; filename=\"\"") == std::string());
    CHECK(value("form-data; filename = x ;") == std::string("x"));
    CHECK_FALSE(value("form-data; name=\"filename=x\""));
    CHECK_FALSE(value("form-data"));
    CHECK(value("form-data; filename=\"open") == std::string("open"));
}
