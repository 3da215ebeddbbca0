#include "kube/api/failure.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::kube;
using namespace std::chrono_literals;

namespace {

std::string status(const std::string& reason, const std::string& message) {
    return R"({"kind":"Status","reason":")" + reason + R"(","message":")" + message + R"("})";
}

http::ResponseHead head(int status, const std::string& retry_after = {}) {
    http::ResponseHead made(status);
    if (!retry_after.empty()) made.fields.set("Retry-After", retry_after);
    return made;
}

}  // namespace

TEST_CASE("an answer's status and reason become a code and a word") {
    struct Row {
        int status;
        const char* reason;
        ErrorCode code;
    };
    for (const Row& row : {Row{400, "BadRequest", ErrorCode::invalid_argument},
                           {401, "Unauthorized", ErrorCode::unauthenticated},
                           {403, "Forbidden", ErrorCode::permission_denied},
                           {404, "NotFound", ErrorCode::not_found},
                           {409, "AlreadyExists", ErrorCode::conflict},
                           {410, "Expired", ErrorCode::not_found},
                           {422, "Invalid", ErrorCode::invalid_argument},
                           {429, "TooManyRequests", ErrorCode::resource_exhausted},
                           {500, "InternalError", ErrorCode::bad_gateway},
                           {503, "ServiceUnavailable", ErrorCode::unavailable},
                           {504, "Timeout", ErrorCode::timeout}}) {
        const Error error = failure_of(row.status, status(row.reason, "why"));
        CHECK(error.code() == row.code);
        CHECK(error.wire() == row.reason);
        CHECK(error.message() == "why");
    }
}

TEST_CASE("a quota that is used up is no lack of rights") {
    const Error error = failure_of(403, status("Forbidden", "pods x is forbidden: exceeded quota"));
    CHECK(error.code() == ErrorCode::resource_exhausted);
}

TEST_CASE("what others answer in its place is shown by its first line") {
    CHECK(failure_of(502, "Bad Gateway\r\n<html>").message() ==
          "the API server answered 502: Bad Gateway");
    CHECK(failure_of(502, std::string(5000, 'x')).message() == "the API server answered 502");
    CHECK(failure_of(404, "[]").code() == ErrorCode::not_found);
    CHECK(failure_of(404, "{}").message() == "the API server answered 404");
    CHECK(failure_of(404, R"({"message":7})").code() == ErrorCode::not_found);
}

TEST_CASE("an error among events has the code that it says") {
    const Error error = failure_of_event(R"({"code":410,"reason":"Expired","message":"old"})");
    CHECK(error.code() == ErrorCode::not_found);
    CHECK(error.wire() == "Expired");
    CHECK(failure_of_event("7").code() == ErrorCode::protocol);
    CHECK(failure_of_event(R"({"code":7})").code() == ErrorCode::bad_gateway);
}

TEST_CASE("only what does no harm is sent again") {
    using enum Repeating;
    CHECK(pause_before_repeat(head(429, "3"), harmful) == 3s);
    CHECK(pause_before_repeat(head(429), harmful) == 0s);
    CHECK(pause_before_repeat(head(503, "1"), harmful) == 1s);
    CHECK_FALSE(pause_before_repeat(head(503), harmful));
    CHECK(pause_before_repeat(head(503), harmless) == 0s);
    CHECK_FALSE(pause_before_repeat(head(500), harmful));
    CHECK(pause_before_repeat(head(500), harmless) == 0s);
    CHECK_FALSE(pause_before_repeat(head(409), harmless));
    CHECK_FALSE(pause_before_repeat(head(404, "1"), harmless));
    // Nobody waits for hours, nor for what is no number.
    CHECK(pause_before_repeat(head(429, "99999"), harmless) == 30s);
    CHECK(pause_before_repeat(head(429, "1x"), harmless) == 0s);
    CHECK(pause_before_repeat(head(429, "-1"), harmless) == 0s);

    CHECK(may_repeat(Error(ErrorCode::unavailable, "no connection"), harmful));
    CHECK_FALSE(may_repeat(Error(ErrorCode::bad_gateway, "cut"), harmful));
    CHECK(may_repeat(Error(ErrorCode::bad_gateway, "cut"), harmless));
    CHECK_FALSE(may_repeat(Error(ErrorCode::timeout, "late"), harmless));
}
