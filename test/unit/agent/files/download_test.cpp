#include "unit/agent/agent_process.hpp"

#include <catch2/catch.hpp>

#include <filesystem>

using namespace opensandbox;
using namespace opensandbox::agent;
using namespace opensandbox::agent::testing;

namespace {

constexpr std::size_t kMany = std::size_t{24} << 20;

/// Every byte tells where it stands, so that nothing can come twice or out of place unnoticed.
std::string pattern(std::size_t size) {
    std::string text(size, '\0');
    for (std::size_t i = 0; i < size; ++i)
        text[i] = static_cast<char>((i * 2654435761U) >> 13);
    return text;
}

std::string get(const std::string& path, const std::string& more = {}) {
    return "GET /files/download?path=" + path + " HTTP/1.1\r\nHost: a\r\n" + more + "\r\n";
}

/// Reads an answer with `size` bytes of body; the body.
std::string body_of(const RawConnection& connection, std::size_t size) {
    std::string all;
    std::size_t begin = std::string::npos;
    while (begin == std::string::npos || all.size() < begin + size) {
        std::string piece = connection.receive(1 << 20);
        if (piece.empty()) break;
        all += piece;
        std::size_t end = all.find("\r\n\r\n");
        if (begin == std::string::npos && end != std::string::npos) begin = end + 4;
    }
    return begin == std::string::npos ? std::string() : all.substr(begin);
}

}  // namespace

TEST_CASE("A long file and a long part of it arrive whole, one after the other") {
    AgentProcess agent;
    Scratch scratch;
    std::string content = pattern(kMany + 5);
    std::string path = scratch.file("long", content);
    RawConnection connection(agent.port());
    connection.send(get(path));
    CHECK((body_of(connection, content.size()) == content));
    connection.send(get(path, "Range: bytes=1000001-9000000\r\n"));
    CHECK((body_of(connection, 8000000) == content.substr(1000001, 8000000)));
    connection.send(get(path, "Range: bytes=-3000000\r\n"));
    CHECK((body_of(connection, 3000000) == content.substr(content.size() - 3000000)));
}

TEST_CASE("A reader that takes its time gets all of a long file, and others are served meanwhile") {
    AgentProcess agent;
    Scratch scratch;
    std::string content = pattern(kMany);
    std::string path = scratch.file("long", content);
    RawConnection slow(agent.port(), 4096);
    slow.send(get(path));
    CHECK(agent.call("GET", "/ping").status == 200);
    RawConnection quick(agent.port());
    quick.send(get(path));
    CHECK((body_of(quick, content.size()) == content));
    CHECK((body_of(slow, content.size()) == content));
}

TEST_CASE("A file that shrinks while it is sent cuts the connection") {
    AgentProcess agent;
    Scratch scratch;
    std::string path = scratch.file("long", pattern(kMany));
    RawConnection connection(agent.port(), 4096);
    connection.send(get(path));
    std::string seen = connection.receive_until("\r\n\r\n");
    REQUIRE(seen.find("Content-Length: " + std::to_string(kMany)) != std::string::npos);
    // Most of it is still here: the reader has taken none of it and the kernel keeps only some.
    std::filesystem::resize_file(path, 4096);
    std::size_t got = seen.size();
    for (std::string piece = "x"; !piece.empty(); got += piece.size())
        piece = connection.receive(1 << 20);
    CHECK(got < kMany);
    CHECK(agent.call("GET", "/ping").status == 200);
}

TEST_CASE("A client that leaves in the middle of a file leaves nothing behind") {
    AgentProcess agent;
    Scratch scratch;
    std::string path = scratch.file("long", pattern(kMany));
    auto descriptors = [&] {
        std::filesystem::directory_iterator all("/proc/" + std::to_string(agent.pid()) + "/fd");
        return std::distance(begin(all), end(all));
    };
    REQUIRE(agent.call("GET", "/ping").status == 200);
    auto before = descriptors();
    for (int i = 0; i < 3; ++i) {
        RawConnection connection(agent.port(), 4096);
        connection.send(get(path));
        CHECK(connection.receive_until("\r\n\r\n").starts_with("HTTP/1.1 200"));
    }
    CHECK(eventually([&] { return descriptors() <= before; }));
}
