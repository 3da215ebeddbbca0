#include "agent/stream/replay.hpp"
#include "unit/agent/agent_process.hpp"
#include "unit/agent/printable.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::agent;
using namespace opensandbox::agent::testing;

namespace {

using Stream = EventWriter::Stream;

std::string post_command(const std::string& body) {
    return "POST /command HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + body;
}

std::string id_in(const std::string& text) {
    const std::string mark = "\"init\",\"text\":\"";
    std::size_t at = text.find(mark);
    REQUIRE(at != std::string::npos);
    return text.substr(at + mark.size(), 32);
}

std::string all_of(const Replay& replay, std::uint64_t offset) {
    std::string out;
    while (auto piece = replay.read(offset)) {
        out += piece->kind == Stream::standard_output ? "<" : ">";
        out += piece->bytes;
        offset = piece->next;
    }
    return out;
}

}  // namespace

TEST_CASE("A replay gives both streams from any offset that is kept") {
    Replay replay(8);
    CHECK(all_of(replay, 0).empty());
    replay.append(Stream::standard_output, "ab");
    replay.append(Stream::standard_output, "c");
    replay.append(Stream::standard_error, "de");
    CHECK(all_of(replay, 0) == "<abc>de");
    CHECK(all_of(replay, 1) == "<bc>de");
    CHECK(all_of(replay, 4) == ">e");
    CHECK(all_of(replay, 5).empty());
    replay.append(Stream::standard_output, "fghij");
    CHECK(replay.oldest() == 2);
    CHECK(replay.total() == 10);
    CHECK(all_of(replay, 0) == "<c>de<fghij");
    CHECK(all_of(replay, 99).empty());
}

TEST_CASE("A replay of streams that alternate for ever stays bounded and in order") {
    Replay replay(1 << 20);
    for (int i = 0; i < 20'000; ++i)
        replay.append(i % 2 == 0 ? Stream::standard_output : Stream::standard_error,
                      i % 2 == 0 ? "o" : "e");
    CHECK(replay.total() == 20'000);
    CHECK(replay.oldest() >= 10'000);
    auto piece = replay.read(0);
    REQUIRE(piece);
    CHECK(piece->bytes == (piece->kind == Stream::standard_output ? "o" : "e"));
}

TEST_CASE("A reader whose connection broke comes back to the output it has not seen") {
    AgentProcess agent;
    Scratch scratch;
    std::string id;
    {
        RawConnection connection(agent.port());
        connection.send(post_command(
            shell_request("echo one; echo two >&2; until test -e " + scratch.at("go") +
                          "; do sleep 0.02; done; echo three; until test -e " + scratch.at("end") +
                          "; do sleep 0.02; done; echo four; exit 6")));
        std::string seen = connection.receive_until("two\\n");
        id = id_in(seen);
    }
    scratch.file("go", "");
    RawConnection again(agent.port());
    again.send("GET /command/" + id + "/stream?offset=4 HTTP/1.1\r\nHost: a\r\n\r\n");
    std::string text = again.receive_until("three\\n");
    CHECK(text.find("\"init\",\"text\":\"" + id) != std::string::npos);
    CHECK(text.find("\"stderr\",\"text\":\"two\\n\"") != std::string::npos);
    CHECK(text.find("\"one\\n\"") == std::string::npos);
    scratch.file("end", "");
    text += again.receive_until("\r\n0\r\n\r\n");
    CHECK(text.find("\"stdout\",\"text\":\"four\\n\"") != std::string::npos);
    CHECK(text.find("\"evalue\":\"6\"") != std::string::npos);

    Reply whole = agent.call("GET", "/command/" + id + "/stream");
    auto events = parse_events(whole.body);
    CHECK(joined(events, "stdout") == "one\nthree\nfour\n");
    CHECK(joined(events, "stderr") == "two\n");
    CHECK(events.back().value == "6");
    CHECK(whole.fields.get("EXECD-COMMANDS-TAIL-CURSOR") == "0");
    Reply end = agent.call("GET", "/command/" + id + "/stream?offset=19");
    CHECK(joined(parse_events(end.body), "stdout").empty());
    CHECK(parse_events(end.body).back().type == "error");
    CHECK(agent.call("GET", "/command/" + id + "/stream?offset=-1").status == 400);
    CHECK(agent.call("GET", "/command/none/stream").status == 404);
}

TEST_CASE("A newer reader takes the place of the one before") {
    AgentProcess agent;
    Scratch scratch;
    RawConnection first(agent.port());
    first.send(post_command(shell_request("echo one; until test -e " + scratch.at("end") +
                                          "; do sleep 0.02; done; echo two")));
    std::string id = id_in(first.receive_until("one\\n"));
    RawConnection second(agent.port());
    second.send("GET /command/" + id + "/stream HTTP/1.1\r\nHost: a\r\n\r\n");
    CHECK(second.receive_until("one\\n").find("one\\n") != std::string::npos);
    std::string rest = first.receive_until("0\r\n\r\n");
    CHECK(rest.ends_with("0\r\n\r\n"));
    CHECK(rest.find("execution_complete") == std::string::npos);
    scratch.file("end", "");
    std::string text = second.receive_until("\r\n0\r\n\r\n");
    CHECK(text.find("two\\n") != std::string::npos);
    CHECK(text.find("execution_complete") != std::string::npos);
}

TEST_CASE("The output of ended commands is given back when others ended since") {
    AgentProcess agent;
    std::string id = agent.command(shell_request("echo kept")).front().text;
    CHECK(agent.call("GET", "/command/" + id + "/stream").status == 200);
    for (int i = 0; i < 9; ++i)
        agent.command(shell_request("true"));
    CHECK(agent.call("GET", "/command/" + id + "/stream").status == 404);
    auto events = agent.command(shell_request("true", "\"background\":true"));
    CHECK(agent.call("GET", "/command/" + events.front().text + "/stream").status == 400);
}
