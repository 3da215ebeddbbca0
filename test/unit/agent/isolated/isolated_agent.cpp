#include "isolated_agent.hpp"

#include "json/document.hpp"
#include "unit/agent/printable.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>

namespace opensandbox::agent::testing {

IsolatedAgent::IsolatedAgent(const std::string& more) {
    char path[] = "/var/tmp/isolation-test-XXXXXX";
    REQUIRE(::mkdtemp(path) != nullptr);
    uppers_ = path;
    std::filesystem::create_directory(workspace());
    std::filesystem::create_directory(scratch_.at("data"));
    std::filesystem::create_directory(scratch_.at("private"));
    configuration_ = scratch_.file("isolation.toml", "upper_root = \"" + uppers() +
                                                         "\"\nallowed_writable = [\"" +
                                                         scratch_.at("data") + "\"]\n" + more);
    restart();
}

IsolatedAgent::~IsolatedAgent() {
    agent_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(uppers_, ignored);
}

void IsolatedAgent::restart() {
    agent_.reset();
    AgentOptions options;
    options.isolation_config = configuration_;
    agent_.emplace(std::move(options));
    REQUIRE(agent_->ready().empty());
}

Reply IsolatedAgent::create(const std::string& json) {
    return agent_->call("POST", "/v1/isolated/session", json);
}

std::string IsolatedAgent::session(const std::string& mode, const std::string& more) {
    Reply reply = create(R"({"workspace":{"path":")" + workspace() + R"(","mode":")" + mode +
                         "\"}" + (more.empty() ? "" : "," + more) + "}");
    INFO(reply.body);
    REQUIRE(reply.status == 201);
    return member(reply.body, "session_id");
}

std::vector<StreamEvent> IsolatedAgent::run(const std::string& session, const std::string& code,
                                            const std::string& more) {
    json::object body{{"code", code}};
    std::string text = json::serialize(json::value(std::move(body)));
    if (!more.empty()) text.insert(text.size() - 1, "," + more);
    Reply reply = call("POST", session, "/run", text);
    INFO(reply.body.substr(0, 2000));
    REQUIRE(reply.status == 200);
    return parse_events(reply.body);
}

std::string IsolatedAgent::output(const std::string& session, const std::string& code) {
    auto events = run(session, code);
    INFO(joined(events, "stderr") << events.back().value);
    CHECK(exit_code(events) == 0);
    return joined(events, "stdout");
}

Reply IsolatedAgent::call(const std::string& method, const std::string& session,
                          const std::string& rest, const std::string& body) {
    return agent_->call(method, "/v1/isolated/session/" + session + rest, body);
}

int exit_code(const std::vector<StreamEvent>& events) {
    if (events.empty()) return -1000;
    if (events.back().type == "execution_complete") return 0;
    if (events.back().type != "error") return -1000;
    return std::atoi(events.back().value.c_str());
}

std::string member(const std::string& text, const std::string& name) {
    auto document = json::parse(text);
    INFO(text);
    REQUIRE(document);
    const json::value* value = json::find(document->get_object(), name);
    if (!value) return {};
    return value->is_string() ? std::string(value->get_string()) : json::serialize(*value);
}

int processes_with(const std::string& mark) {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        std::ifstream in(entry.path() / "cmdline", std::ios::binary);
        std::string line{std::istreambuf_iterator<char>(in), {}};
        if (line.find(mark) != std::string::npos) ++count;
    }
    return count;
}

}  // namespace opensandbox::agent::testing
