#include "model/task.hpp"

#include "support/catch_result.hpp"

using namespace opensandbox;
using namespace opensandbox::model;

TEST_CASE("task: what is read is written again") {
    const char* text =
        R"([{"name":"b-0","process":{"command":["sh"],"args":["-c"],"env":[{"name":"A","value":"1"}],)"
        R"("workingDir":"/tmp","timeoutSeconds":5},"processStatus":{"terminated":{"exitCode":3,)"
        R"("signal":0,"reason":"Failed","message":"","startedAt":"2026-01-01T00:00:00Z",)"
        R"("finishedAt":null}}}])";
    auto tasks = parse_tasks(text);
    REQUIRE(tasks);
    REQUIRE(tasks->size() == 1);
    const Task& task = tasks->front();
    CHECK(task.process->timeout_seconds == 5);
    CHECK(task.status.state == TaskStatus::State::terminated);
    CHECK(task.status.exit_code == 3);
    CHECK_FALSE(task.status.succeeded());
    CHECK_FALSE(task.status.finished_at);
    CHECK(tasks_json(*tasks) == text);
}

TEST_CASE("task: states") {
    const auto state = [](const std::string& status) {
        auto tasks = parse_tasks(R"([{"name":"a","processStatus":)" + status + "}]");
        return tasks.value().front().status.state;
    };
    CHECK(state(R"({"running":{"startedAt":null}})") == TaskStatus::State::running);
    CHECK(state(R"({"waiting":{}})") == TaskStatus::State::waiting);
    CHECK(state("{}") == TaskStatus::State::unknown);
}

TEST_CASE("task: what is wrong is named") {
    const auto refusal = [](const char* text) {
        auto tasks = parse_tasks(text);
        return tasks ? std::string() : tasks.error().message();
    };
    CHECK(refusal("{}").find("list") != std::string::npos);
    CHECK(refusal(R"([{"name":"../a"}])").find("name") != std::string::npos);
    CHECK(refusal(R"([{"name":"a","process":{}}])").find("command") != std::string::npos);
    CHECK(refusal(R"([{"name":"a","process":{"command":["x"],"env":{}}}])").find("env") !=
          std::string::npos);
    CHECK(refusal("[]").empty());
}
