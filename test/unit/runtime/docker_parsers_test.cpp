#include "runtime/docker/engine/engine.hpp"
#include "runtime/docker/engine/failure.hpp"
#include "runtime/docker/engine/image.hpp"
#include "runtime/docker/engine/line_stream.hpp"
#include "runtime/docker/engine/log_decoder.hpp"
#include "support/catch_result.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::runtime::docker;

namespace {

/// All lines that come out when the text is fed in pieces of one size.
std::vector<std::string> lines_of(std::string_view text, std::size_t piece) {
    JsonLineSplitter splitter(100);
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < text.size(); at += piece) {
        splitter.feed(text.substr(at, piece));
        while (true) {
            auto line = splitter.next();
            REQUIRE(line);
            if (!*line) break;
            lines.emplace_back(**line);
        }
    }
    return lines;
}

std::string frame(char source, const std::string& content) {
    std::string head(8, '\0');
    head[0] = source;
    head[6] = static_cast<char>(content.size() >> 8U);
    head[7] = static_cast<char>(content.size() & 0xffU);
    return head + content;
}

}  // namespace

TEST_CASE("JSON lines are the same however the bytes come") {
    std::string text = "{\"a\":1}\r\n\r\n  \n{\"b\":2}\n{\"c\":3}";
    auto piece = GENERATE(as<std::size_t>(), 1, 2, 3, 7, 100);
    CHECK(lines_of(text, piece) == std::vector<std::string>{"{\"a\":1}", "{\"b\":2}"});
}

TEST_CASE("what stands behind the last line end is kept apart") {
    JsonLineSplitter splitter(100);
    splitter.feed("{}\n{\"half\"");
    REQUIRE(splitter.next());
    REQUIRE(splitter.next());
    CHECK(splitter.rest() == "{\"half\"");
}

TEST_CASE("a line without end is refused before it fills the memory") {
    JsonLineSplitter splitter(10);
    splitter.feed("0123456789");
    CHECK(splitter.next());
    splitter.feed("x");
    auto refused = splitter.next();
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code() == ErrorCode::too_large);
    JsonLineSplitter whole(10);
    whole.feed("0123456789x\n{}\n");
    CHECK_FALSE(whole.next());
}

TEST_CASE("log frames are taken apart however the bytes come") {
    std::string stream =
        frame(1, "out\n") + frame(2, "") + frame(2, std::string(300, 'e')) + frame(1, "more");
    auto piece = GENERATE(as<std::size_t>(), 1, 3, 8, 11, 1000);
    LogFrameDecoder decoder;
    std::string out;
    std::string err;
    for (std::size_t at = 0; at < stream.size(); at += piece) {
        auto fed = decoder.feed(stream.substr(at, piece), [&](auto source, std::string_view bytes) {
            (source == LogFrameDecoder::Source::err ? err : out) += bytes;
        });
        REQUIRE(fed);
    }
    CHECK(out == "out\nmore");
    CHECK(err == std::string(300, 'e'));
    CHECK(decoder.complete());
    REQUIRE(decoder.feed(std::string_view(stream).substr(0, 5), [](auto, auto) {}));
    CHECK_FALSE(decoder.complete());
}

TEST_CASE("bytes that are no log frames are refused, and so is all that follows") {
    LogFrameDecoder decoder;
    auto ignore = [](LogFrameDecoder::Source, std::string_view) {};
    auto refused = decoder.feed("plain text of a terminal", ignore);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code() == ErrorCode::protocol);
    CHECK_FALSE(decoder.feed(frame(1, "x"), ignore));
}

TEST_CASE("of a long text the newest whole lines are kept") {
    NewestBytes newest(10);
    for (int i = 0; i < 100; ++i)
        newest.append("line" + std::to_string(i % 10) + "\n");
    CHECK(newest.take() == "line9\n");
    CHECK(newest.dropped());
    NewestBytes one(4);
    one.append("0123456789");
    CHECK(one.take() == "6789");
    NewestBytes fits(10);
    fits.append("0123");
    fits.append("456789");
    CHECK(fits.take() == "0123456789");
    CHECK_FALSE(fits.dropped());
}

TEST_CASE("a reference is split into what a pull takes") {
    auto check = [](std::string_view image, std::string_view name, std::string_view tag) {
        CAPTURE(image);
        PullReference reference = split_reference(image);
        CHECK(reference.name == name);
        CHECK(reference.tag == tag);
    };
    check("busybox", "busybox", "latest");
    check("busybox:1.36", "busybox", "1.36");
    check("127.0.0.1:5000/team/app", "127.0.0.1:5000/team/app", "latest");
    check("127.0.0.1:5000/team/app:v1", "127.0.0.1:5000/team/app", "v1");
    check("app@sha256:abc", "app", "sha256:abc");
    check("host:5000/app:v1@sha256:abc", "host:5000/app", "sha256:abc");
}

TEST_CASE("credentials are URL-safe base64 with padding and name the registry") {
    // {"username":"u","password":"~?>","serveraddress":"r.io:5000"}
    CHECK(registry_auth_header(RegistryAuth("u", "~?>"), "r.io:5000/app") ==
          "eyJ1c2VybmFtZSI6InUiLCJwYXNzd29yZCI6In4_PiIsInNlcnZlcmFkZHJlc3MiOiJyLmlvOjUwMDAifQ==");
    RegistryAuth elsewhere("u", "p");
    elsewhere.server_address = "mirror";
    // {"username":"u","password":"p","serveraddress":"mirror"}
    CHECK(registry_auth_header(elsewhere, "app") ==
          "eyJ1c2VybmFtZSI6InUiLCJwYXNzd29yZCI6InAiLCJzZXJ2ZXJhZGRyZXNzIjoibWlycm9yIn0=");
}

TEST_CASE("a status of the engine is an error of the same meaning with the engine's words") {
    auto [status, code] = GENERATE(table<int, ErrorCode>({
        {400, ErrorCode::invalid_argument},
        {401, ErrorCode::unauthenticated},
        {403, ErrorCode::permission_denied},
        {404, ErrorCode::not_found},
        {409, ErrorCode::conflict},
        {500, ErrorCode::internal},
        {501, ErrorCode::unsupported},
        {503, ErrorCode::unavailable},
        {599, ErrorCode::internal},
    }));
    Error error = error_of_status(status, R"({"message":"No such thing: x"})");
    CHECK(error.code() == code);
    CHECK(error.message() == "No such thing: x");
}

TEST_CASE("states and full disks are told from failures by the engine's words") {
    auto code_of = [](const std::string& message) {
        return error_of_status(500, R"({"message":")" + message + R"("})").code();
    };
    CHECK(code_of("Container x is not paused") == ErrorCode::conflict);
    CHECK(code_of("container state improper") == ErrorCode::conflict);
    CHECK(code_of("the container name \\\"a\\\" is already in use by 12") == ErrorCode::conflict);
    CHECK(code_of("write /x: No space left on device") == ErrorCode::resource_exhausted);
    CHECK(code_of("something else") == ErrorCode::internal);
    Error taken = error_of_status(500, R"({"message":"Bind for 0.0.0.0:80 failed: port is already )"
                                       R"(allocated"})");
    CHECK(is_port_conflict(taken));
    CHECK_FALSE(is_port_conflict(error_of_status(500, R"({"message":"other"})")));
}

TEST_CASE("an error that is no JSON is shown as far as it is text") {
    CHECK(error_of_status(502, "<html>Bad\r\nGateway</html>").message() ==
          "answered with status 502: <html>Bad  Gateway</html>");
    CHECK(error_of_status(500, std::string("\x01\x02\xff", 3)).message() ==
          "answered with status 500");
    CHECK(error_of_status(500, R"({"message":5})").message() ==
          R"(answered with status 500: {"message":5})");
    CHECK(error_of_status(404, "no such page").code() == ErrorCode::bad_gateway);
    CHECK(error_of_status(404, R"({"message":"page not found"})").code() == ErrorCode::bad_gateway);
    std::string longer = error_of_status(500, std::string(100'000, 'x')).message();
    CHECK(longer.size() == 2000);
    // A cut is not made inside a character.
    std::string text(1999, 'x');
    CHECK(presentable(text + "\xc3\xa4 and more").size() == 1999);
}

TEST_CASE("what ends a pull is told apart by code and words") {
    CHECK(error_of_pull(404, "x").code() == ErrorCode::not_found);
    CHECK(error_of_pull(0, "manifest for a:b not found: manifest unknown").code() ==
          ErrorCode::not_found);
    CHECK(error_of_pull(0, "unauthorized: authentication required").code() ==
          ErrorCode::unauthenticated);
    CHECK(error_of_pull(0, "denied: requested access").code() == ErrorCode::permission_denied);
    CHECK(error_of_pull(0, "connection reset by peer").code() == ErrorCode::bad_gateway);
    CHECK(error_of_pull(0, "write x: no space left on device").code() ==
          ErrorCode::resource_exhausted);
}
