#include "cli/failure.hpp"

#include "cli/shell_quote.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::cli;

namespace {

sdk::Execution failed(std::string value) {
    sdk::Execution execution;
    execution.error.emplace();
    execution.error->name = "CommandExecError";
    execution.error->value = std::move(value);
    return execution;
}

}  // namespace

TEST_CASE("the exit code is the remote command's own") {
    sdk::Execution execution;
    for (int code : {0, 1, 3, 42, 130, 255}) {
        execution.exit_code = code;
        CHECK(exit_code_of(execution) == code);
    }
    execution.exit_code = -1;
    CHECK(exit_code_of(execution) == 1);
    execution.exit_code = 256;
    CHECK(exit_code_of(execution) == 1);
}

TEST_CASE("a command that did not start ends like in a shell") {
    CHECK(exit_code_of(failed("exec: \"x\": executable file not found in $PATH")) == 127);
    CHECK(exit_code_of(failed("fork/exec /x: No such file or directory")) == 127);
    CHECK(exit_code_of(failed("/x: permission denied")) == 126);
    CHECK(exit_code_of(failed("/x: Exec format error")) == 126);
    CHECK(exit_code_of(failed("something else")) == 1);
    CHECK(exit_code_of(sdk::Execution()) == 1);
    CHECK(start_failure_of(failed("why")) == "why");
    sdk::Execution ended = failed("3");
    ended.exit_code = 3;
    CHECK(start_failure_of(ended).empty());
}

TEST_CASE("failures are one line with the server's code and a hint") {
    Failure unreachable(
        sdk::Error(sdk::ErrorCode::unavailable, "cannot reach http://h:1: refused"));
    CHECK(unreachable.exit_code() == 1);
    CHECK(unreachable.describe().find("http://h:1") != std::string::npos);
    CHECK(unreachable.describe().find("opensandbox serve") != std::string::npos);

    Failure key(sdk::Error(sdk::ErrorCode::unauthenticated, 401, "INVALID_API_KEY", "wrong", "r"));
    CHECK(key.describe().find("wrong [INVALID_API_KEY]") == 0);
    CHECK(key.describe().find("--api-key") != std::string::npos);

    Failure noisy(sdk::Error(sdk::ErrorCode::internal, "a\nb\x1b[31m"));
    CHECK(noisy.describe() == "a b [31m");

    CHECK(Failure::usage("x").exit_code() == 2);
    CHECK(Outcome(7).exit_code() == 7);
    CHECK(Outcome(Failure::usage("x")).exit_code() == 2);
    CHECK(Outcome(sdk::Error(sdk::ErrorCode::io, "x")).exit_code() == 1);
}

TEST_CASE("a server that answered 503 is there: no advice to start one") {
    Failure busy(sdk::Error(sdk::ErrorCode::unavailable, 503, "", "busy", ""));
    CHECK(busy.describe() == "busy");
}

TEST_CASE("what TLS failed of is told without advice to start a server") {
    auto hint = [](std::string why) {
        return Failure(sdk::Error(sdk::ErrorCode::unavailable,
                                  "cannot reach https://h: TLS with h:443: " + std::move(why)))
            .describe();
    };
    CHECK(hint("wrong version number").find("--protocol http") != std::string::npos);
    CHECK(hint("the server's certificate does not hold").find("SSL_CERT_FILE") !=
          std::string::npos);
    CHECK(hint("wrong version number").find("opensandbox serve") == std::string::npos);
}

TEST_CASE("words for a shell come back as they were") {
    CHECK(shell_quote("plain-1.0/x=y:z") == "plain-1.0/x=y:z");
    CHECK(shell_quote("") == "''");
    CHECK(shell_quote("a b") == "'a b'");
    CHECK(shell_quote("$HOME") == "'$HOME'");
    CHECK(shell_quote("it's") == R"('it'\''s')");
    CHECK(shell_quote("*;|&\n") == "'*;|&\n'");
    CHECK(shell_join({"echo", "a b", ""}) == "echo 'a b' ''");
}
