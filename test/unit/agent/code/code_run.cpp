#include "code_run.hpp"

#include "json/document.hpp"
#include "unit/agent/printable.hpp"

#include <catch2/catch.hpp>

#include <cstdlib>

namespace opensandbox::agent::testing {
namespace {

std::string text_of(const json::object& from, std::string_view name) {
    const json::value* value = json::find(from, name);
    return value && value->is_string() ? std::string(value->get_string()) : std::string();
}

void take_error(const json::object& error, CodeRun& run) {
    run.name = text_of(error, "ename");
    run.value = text_of(error, "evalue");
    for (const json::value& line : error.at("traceback").get_array())
        run.trace.emplace_back(line.get_string());
}

/// The body of a chunked answer.
std::string unchunked(const std::string& raw) {
    std::string body;
    std::size_t at = raw.find("\r\n\r\n") + 4;
    while (at < raw.size()) {
        std::size_t end = raw.find("\r\n", at);
        std::size_t size = std::strtoul(raw.c_str() + at, nullptr, 16);
        if (size == 0 || end == std::string::npos) break;
        body += raw.substr(end + 2, size);
        at = end + 2 + size + 2;
    }
    return body;
}

}  // namespace

std::string CodeRun::traced() const {
    std::string out;
    for (const std::string& line : trace)
        out += line + "\n";
    return out;
}

CodeRun parse_run(const std::string& body) {
    CodeRun run;
    std::size_t at = 0;
    int inits = 0;
    while (at < body.size()) {
        std::size_t end = body.find("\n\n", at);
        REQUIRE(end != std::string::npos);
        auto document = json::parse(std::string_view(body).substr(at, end - at));
        REQUIRE(document);
        const json::object& event = document->get_object();
        CHECK(json::find(event, "timestamp") != nullptr);
        std::string type = text_of(event, "type");
        std::string text = text_of(event, "text");
        // Nothing follows a terminal event.
        CHECK(run.last != "error");
        CHECK(run.last != "execution_complete");
        if (type == "init") {
            CHECK(at == 0);
            ++inits;
            run.id = text;
        }
        if (type == "stdout") run.output += text;
        if (type == "stderr") run.errors += text;
        if (type == "execution_count") run.count = event.at("execution_count").as_int64();
        if (type == "result") {
            const json::object& results = event.at("results").get_object();
            run.text = text_of(results, "text");
            run.results.push_back(json::serialize(event.at("results")));
        }
        if (type == "error") take_error(event.at("error").get_object(), run);
        if (type != "ping") run.last = type;
        at = end + 2;
    }
    CHECK(inits == 1);
    return run;
}

AgentOptions with_own_environment() {
    AgentOptions options;
    for (const char* name : {"PATH", "HOME"}) {
        const char* value = std::getenv(name);
        if (value != nullptr) options.environment.emplace_back(name, value);
    }
    return options;
}

std::string code_request(const std::string& id, const std::string& language,
                         const std::string& code) {
    json::object context;
    if (!id.empty()) context.emplace("id", id);
    if (!language.empty()) context.emplace("language", language);
    json::object body{{"code", code}, {"context", std::move(context)}};
    return json::serialize(json::value(std::move(body)));
}

CodeRun run_code(const AgentProcess& agent, const std::string& id, const std::string& code) {
    Reply reply = agent.call("POST", "/code", code_request(id, "", code));
    INFO(code << "\n" << reply.body.substr(0, 1000));
    REQUIRE(reply.status == 200);
    return parse_run(reply.body);
}

CodeRun run_default(const AgentProcess& agent, const std::string& language,
                    const std::string& code) {
    Reply reply = agent.call("POST", "/code", code_request("", language, code));
    INFO(code << "\n" << reply.body.substr(0, 1000));
    REQUIRE(reply.status == 200);
    return parse_run(reply.body);
}

std::string make_context(const AgentProcess& agent, const std::string& language,
                         const std::string& cwd) {
    json::object body{{"language", language}};
    if (!cwd.empty()) body.emplace("cwd", cwd);
    Reply reply =
        agent.call("POST", "/code/context", json::serialize(json::value(std::move(body))));
    INFO(reply.body);
    REQUIRE(reply.status == 200);
    return text_of(json::parse(reply.body)->get_object(), "id");
}

RunningCode::RunningCode(const AgentProcess& agent, const std::string& id, const std::string& code,
                         const std::string& until)
    : connection_(agent.port()) {
    std::string body = code_request(id, "", code);
    connection_.send("POST /code HTTP/1.1\r\nHost: a\r\nContent-Length: " +
                     std::to_string(body.size()) + "\r\n\r\n" + body);
    // Pings would keep a stream without the text alive for ever.
    auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (seen_.find(until) == std::string::npos && std::chrono::steady_clock::now() < limit) {
        std::string piece = connection_.receive(65536);
        if (piece.empty()) break;
        seen_ += piece;
    }
    INFO(seen_);
    REQUIRE(seen_.find(until) != std::string::npos);
}

CodeRun RunningCode::finish() {
    // Pings come every three seconds, so silence means the end.
    while (!seen_.ends_with("\r\n0\r\n\r\n")) {
        std::string piece = connection_.receive(65536);
        if (piece.empty()) break;
        seen_ += piece;
    }
    return parse_run(unchunked(seen_));
}

}  // namespace opensandbox::agent::testing
