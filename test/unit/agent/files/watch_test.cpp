#include "agent/files/watch_tree.hpp"
#include "json/document.hpp"
#include "unit/agent/agent_process.hpp"
#include "unit/agent/printable.hpp"

#include <catch2/catch.hpp>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>

using namespace opensandbox;
using namespace opensandbox::agent;
using namespace opensandbox::agent::testing;

namespace fs = std::filesystem;

namespace {

struct Change {
    std::string type;
    std::string path;
    std::string from;
    std::string reason;
    bool directory = false;
};

/// The stream of a watch, read as far as asked for.
class WatchStream {
  public:
    WatchStream(const AgentProcess& agent, const std::string& path, const std::string& more = {},
                const std::string& prefix = {})
        // A small buffer: whoever is slow shall be seen to be.
        : connection_(agent.port(), 64 * 1024) {
        connection_.send("GET " + prefix + "/files/watch?path=" + path + more +
                         " HTTP/1.1\r\nHost: a\r\n\r\n");
        std::string head = connection_.receive_until("\r\n\r\n");
        INFO(head);
        REQUIRE(head.starts_with("HTTP/1.1 200"));
        REQUIRE(head.find("text/event-stream") != std::string::npos);
        bytes_ = head.substr(head.find("\r\n\r\n") + 4);
        REQUIRE(next().type == "watching");
    }

    /// The next event that is no ping; type "" at the end.
    Change next() {
        while (true) {
            std::size_t end = text_.find("\n\n");
            if (end == std::string::npos) {
                if (!more()) return {};
                continue;
            }
            auto document = json::parse(std::string_view(text_).substr(0, end));
            REQUIRE(document);
            text_.erase(0, end + 2);
            const json::object& members = document->get_object();
            CHECK(members.at("timestamp").as_int64() > 1'600'000'000'000);
            auto text = [&](const char* name) {
                const json::value* value = json::find(members, name);
                return value ? std::string(value->get_string()) : std::string();
            };
            Change change;
            change.type = text("type");
            change.path = text("path");
            change.from = text("from");
            change.reason = text("reason");
            const json::value* directory = json::find(members, "directory");
            change.directory = directory && directory->get_bool();
            if (change.type != "ping") return change;
        }
    }
    /// "type path" (and "<- from") of the next event.
    std::string line() {
        Change change = next();
        return change.type + " " + change.path + (change.from.empty() ? "" : " <- " + change.from);
    }
    /// Whether the body came to its proper end.
    bool over() {
        while (!done_ && more()) {
        }
        return done_;
    }

  private:
    /// Takes one more chunk of the body.
    bool more() {
        while (true) {
            std::size_t line = bytes_.find("\r\n");
            if (line != std::string::npos) {
                std::size_t size = std::stoul(bytes_.substr(0, line), nullptr, 16);
                if (size == 0) {
                    done_ = true;
                    return false;
                }
                if (bytes_.size() >= line + 2 + size + 2) {
                    text_ += bytes_.substr(line + 2, size);
                    bytes_.erase(0, line + 2 + size + 2);
                    return true;
                }
            }
            std::string piece = connection_.receive(65536);
            if (piece.empty()) return false;
            bytes_ += piece;
        }
    }

    RawConnection connection_;
    std::string bytes_;
    std::string text_;
    bool done_ = false;
};

}  // namespace

TEST_CASE("A watch tells what happens to files, in order") {
    AgentProcess agent;
    Scratch scratch;
    WatchStream watch(agent, scratch.path());
    scratch.file("a", "one");
    CHECK(watch.line() == "create " + scratch.at("a"));
    CHECK(watch.line() == "modify " + scratch.at("a"));
    fs::rename(scratch.at("a"), scratch.at("b c"));
    CHECK(watch.line() == "move " + scratch.at("b c") + " <- " + scratch.at("a"));
    std::ofstream(scratch.at("b c"), std::ios::app) << "more";
    CHECK(watch.line() == "modify " + scratch.at("b c"));
    fs::remove(scratch.at("b c"));
    CHECK(watch.line() == "delete " + scratch.at("b c"));
    fs::create_directory(scratch.at("d"));
    Change made = watch.next();
    CHECK(made.type == "create");
    CHECK(made.directory);
    // What is below is not asked for.
    scratch.file("d/inner", "x");
    fs::create_symlink("nowhere", scratch.at("link"));
    CHECK(watch.line() == "create " + scratch.at("link"));
}

TEST_CASE("A move out of a watched directory is a deletion, one into it a creation") {
    AgentProcess agent;
    Scratch scratch;
    fs::create_directories(scratch.at("in/full/deep"));
    fs::create_directories(scratch.at("out/new/deep"));
    scratch.file("out/new/deep/x", "");
    WatchStream watch(agent, scratch.at("in"), "&recursive=true");
    fs::rename(scratch.at("in/full"), scratch.at("out/full"));
    CHECK(watch.line() == "delete " + scratch.at("in/full"));
    // It is not watched any more.
    scratch.file("out/full/deep/y", "");
    fs::rename(scratch.at("out/new"), scratch.at("in/new"));
    CHECK(watch.line() == "create " + scratch.at("in/new"));
    CHECK(watch.line() == "create " + scratch.at("in/new/deep"));
    CHECK(watch.line() == "create " + scratch.at("in/new/deep/x"));
    scratch.file("in/new/deep/z", "");
    CHECK(watch.line() == "create " + scratch.at("in/new/deep/z"));
}

TEST_CASE("A recursive watch follows directories that are moved") {
    AgentProcess agent;
    Scratch scratch;
    fs::create_directories(scratch.at("a/b/c"));
    fs::create_directory(scratch.at("z"));
    WatchStream watch(agent, scratch.path(), "&recursive=1");
    fs::rename(scratch.at("a/b"), scratch.at("z/moved"));
    CHECK(watch.line() == "move " + scratch.at("z/moved") + " <- " + scratch.at("a/b"));
    std::ofstream(scratch.at("z/moved/c/file"));
    CHECK(watch.line() == "create " + scratch.at("z/moved/c/file"));
    fs::remove_all(scratch.at("z"));
    CHECK(watch.line() == "delete " + scratch.at("z/moved/c/file"));
    CHECK(watch.line() == "delete " + scratch.at("z/moved/c"));
    CHECK(watch.line() == "delete " + scratch.at("z/moved"));
    CHECK(watch.line() == "delete " + scratch.at("z"));
}

TEST_CASE("Nothing made in new directories is lost, and nothing is told twice") {
    AgentProcess agent;
    Scratch scratch;
    WatchStream watch(agent, scratch.path(), "&recursive=true");
    std::set<std::string> expected;
    for (int i = 0; i < 60; ++i) {
        std::string deep = scratch.at("n" + std::to_string(i)) + "/x/y";
        fs::create_directories(deep);
        std::ofstream(deep + "/file");
        for (const std::string& part :
             {std::string(), std::string("/x"), std::string("/x/y"), std::string("/x/y/file")}) {
            expected.insert(scratch.at("n" + std::to_string(i)) + part);
        }
    }
    scratch.file("last", "");
    expected.insert(scratch.at("last"));
    std::multiset<std::string> told;
    while (told.size() < expected.size()) {
        Change change = watch.next();
        REQUIRE(change.type == "create");
        told.insert(change.path);
    }
    CHECK(std::set<std::string>(told.begin(), told.end()) == expected);
    CHECK(told.size() == expected.size());
}

TEST_CASE("A watch of one file outlives the file") {
    AgentProcess agent;
    Scratch scratch;
    scratch.file("watched", "");
    WatchStream watch(agent, scratch.at("watched"));
    scratch.file("other", "x");
    std::ofstream(scratch.at("watched"), std::ios::app) << "x";
    CHECK(watch.line() == "modify " + scratch.at("watched"));
    scratch.file("new", "y");
    fs::rename(scratch.at("new"), scratch.at("watched"));
    CHECK(watch.line() == "move " + scratch.at("watched") + " <- " + scratch.at("new"));
    fs::remove(scratch.at("watched"));
    CHECK(watch.line() == "delete " + scratch.at("watched"));
    std::ofstream(scratch.at("watched"));
    CHECK(watch.line() == "create " + scratch.at("watched"));
}

TEST_CASE("A watch ends when its directory goes") {
    AgentProcess agent;
    Scratch scratch;
    fs::create_directory(scratch.at("gone"));
    fs::create_directory(scratch.at("moved"));
    WatchStream removed(agent, scratch.at("gone"));
    WatchStream moved(agent, scratch.at("moved"));
    fs::remove(scratch.at("gone"));
    Change end = removed.next();
    CHECK(end.type == "end");
    CHECK(end.reason == "removed");
    CHECK(removed.over());
    fs::rename(scratch.at("moved"), scratch.at("elsewhere"));
    CHECK(moved.next().reason == "moved");
    CHECK(moved.over());
    // The kernel says nothing while someone uses the directory.
    fs::create_directory(scratch.at("used"));
    UniqueFd user(::open(scratch.at("used").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    WatchStream used(agent, scratch.at("used"));
    fs::remove(scratch.at("used"));
    CHECK(used.next().reason == "removed");
    CHECK(used.over());
}

TEST_CASE("A reader who is too slow learns of the overflow and of what is there") {
    AgentProcess agent;
    Scratch scratch;
    // Long paths, so that no connection takes all that is said of them.
    std::string name(200, 'n');
    std::string deep = "old/" + name + "/" + name + "/" + name;
    fs::create_directories(scratch.at(deep));
    fs::create_directory(scratch.at("doomed"));
    WatchStream watch(agent, scratch.path(), "&recursive=true");
    long before = agent.anonymous_memory();
    // More than the kernel keeps and the connection takes.
    for (int i = 0; i < 20'000; ++i) {
        std::string path = scratch.at(deep + "/" + name + std::to_string(i));
        int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        REQUIRE(fd >= 0);
        ::close(fd);
        ::unlink(path.c_str());
    }
    fs::create_directory(scratch.at("late"));
    scratch.file("late/inside", "");
    scratch.file(deep + "/survivor", "x");
    fs::remove(scratch.at("doomed"));
    CHECK(agent.anonymous_memory() - before < kAllocatorFactor * 8000);
    Change change;
    do {
        change = watch.next();
    } while (!change.type.empty() && change.type != "overflow");
    REQUIRE(change.type == "overflow");
    std::set<std::string> wanted{scratch.at("late"), scratch.at("late/inside"),
                                 scratch.at(deep + "/survivor")};
    while (!wanted.empty()) {
        change = watch.next();
        REQUIRE_FALSE(change.type.empty());
        if (change.type == "create") wanted.erase(change.path);
    }
    // And it goes on, in directories new and old.
    std::ofstream(scratch.at("late/after"));
    do {
        change = watch.next();
    } while (!change.type.empty() && change.path != scratch.at("late/after"));
    CHECK(change.type == "create");
}

TEST_CASE("Watches are refused with what is wrong") {
    AgentProcess agent;
    Scratch scratch;
    Reply missing = agent.call("GET", "/files/watch?path=" + scratch.at("none"));
    CHECK(missing.status == 404);
    CHECK(json::parse(missing.body)->at("code") == "FILE_NOT_FOUND");
    CHECK(json::parse(agent.call("GET", "/files/watch").body)->at("code") == "MISSING_QUERY");
    CHECK(agent.call("GET", "/files/watch?path=/&recursive=maybe").status == 400);
    CHECK(agent.call("GET", "/v1/filesystem/x/1/files/watch?path=/").status == 400);
    fs::create_directory(scratch.at("private"));
    ::chmod(scratch.at("private").c_str(), 0700);
    ::chmod(scratch.path().c_str(), 0755);
    Reply denied =
        agent.call("GET", "/v1/filesystem/12345/12345/files/watch?path=" + scratch.at("private"));
    CHECK(denied.status == 403);
    WatchStream as_user(agent, scratch.path(), "", "/v1/filesystem/12345/12345");
    scratch.file("seen", "");
    CHECK(as_user.line() == "create " + scratch.at("seen"));
}

TEST_CASE("The number of watches is limited, and one whose reader left makes room") {
    AgentProcess agent;
    Scratch scratch;
    {
        std::vector<std::unique_ptr<WatchStream>> watches;
        for (int i = 0; i < 32; ++i)
            watches.push_back(std::make_unique<WatchStream>(agent, scratch.path()));
        Reply refused = agent.call("GET", "/files/watch?path=" + scratch.path());
        CHECK(refused.status == 500);
        CHECK(refused.body.find("32 watches already") != std::string::npos);
    }
    std::unique_ptr<RawConnection> again;
    CHECK(eventually([&] {
        again = std::make_unique<RawConnection>(agent.port());
        again->send("GET /files/watch?path=" + scratch.path() + " HTTP/1.1\r\nHost: a\r\n\r\n");
        return again->receive_until("}").find("watching") != std::string::npos;
    }));
}

TEST_CASE("A watch pings, and ends in order with its agent") {
    AgentProcess agent;
    Scratch scratch;
    RawConnection connection(agent.port());
    connection.send("GET /files/watch?path=" + scratch.path() + " HTTP/1.1\r\nHost: a\r\n\r\n");
    CHECK(connection.receive_until("\"pong\"").find("\"type\":\"ping\"") != std::string::npos);
    agent.signal(SIGTERM);
    std::string rest = connection.receive_until("\r\n0\r\n\r\n");
    CHECK(rest.find("\"reason\":\"stopping\"") != std::string::npos);
    CHECK(rest.ends_with("\r\n0\r\n\r\n"));
    CHECK(agent.wait() == 0);
}

TEST_CASE("The tree of watches knows where everything is") {
    WatchTree tree("/r", 1);
    tree.add(2, 1, "a");
    tree.add(3, 2, "b");
    tree.add(4, 3, "c");
    tree.add(5, 1, "z");
    CHECK(tree.path(1) == "/r");
    CHECK(tree.path(4, "f") == "/r/a/b/c/f");
    CHECK(WatchTree("/", 1).path(1, "f") == "/f");
    tree.move(3, 5, "moved");
    CHECK(tree.path(4) == "/r/z/moved/c");
    CHECK(tree.child(2, "b") == std::nullopt);
    CHECK(tree.child(5, "moved") == 3);
    // What is moved over is gone.
    tree.move(5, 1, "a");
    CHECK_FALSE(tree.contains(2));
    CHECK(tree.path(4) == "/r/a/moved/c");
    tree.begin_round();
    CHECK(tree.visit(5));
    CHECK_FALSE(tree.visit(5));
    CHECK(tree.forget_unvisited().size() == 2);
    CHECK(tree.size() == 2);
    CHECK(tree.remove(5) == std::vector<int>{5});
    CHECK(tree.remove(5).empty());
}
