#pragma once

#include "kube/access/credentials.hpp"
#include "support/catch_result.hpp"
#include "support/event_loop.hpp"
#include "support/scratch_directory.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <catch2/catch.hpp>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

namespace opensandbox::kube::testing {

inline std::string text_of(const std::filesystem::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// Credentials at a time that the test sets, with a folder for their files.
struct Desk {
    Desk() { cluster.server = "https://127.0.0.1:6443"; }

    void write(const std::string& name, const std::string& text) const {
        std::ofstream(scratch.path / name) << text;
    }
    /// Makes a script the credential plugin. It runs in the folder, and each run is a line in
    /// "runs".
    void use_plugin(const std::string& script) {
        write("plugin",
              "#!/bin/sh\ncd '" + scratch.path.string() + "'\necho >> runs\n" + script + "\n");
        REQUIRE(::chmod((scratch.path / "plugin").c_str(), 0755) == 0);
        CredentialPlugin& plugin = cluster.plugin.emplace();
        plugin.api_version = "client.authentication.k8s.io/v1";
        plugin.command = scratch.path / "plugin";
    }
    /// One that answers with what lies in "status".
    void use_answering_plugin() {
        use_plugin(R"~(printf '{"apiVersion":"client.authentication.k8s.io/v1",)~"
                   R"~("kind":"ExecCredential","status":%s}' "$(cat status)")~");
    }
    /// Of a token that holds for so long.
    void answer(const std::string& token, std::chrono::seconds lifetime) const {
        write("status", R"({"token":")" + token + R"(","expirationTimestamp":")" +
                            to_rfc3339(time + lifetime) + "\"}");
    }
    [[nodiscard]] std::size_t runs() const { return text_of(scratch.path / "runs").size(); }

    Credentials& credentials() {
        if (!made) made.emplace(loop.executor(), cluster, [this] { return time; });
        return *made;
    }
    Result<Access> current() {
        Result<Access> access = Error();
        loop.run([&]() -> Awaitable<void> { access = co_await credentials().current(); });
        return access;
    }
    /// What the header says now.
    std::string authorization() {
        auto access = current();
        REQUIRE(access);
        return access->authorization;
    }
    std::string refusal() {
        auto access = current();
        REQUIRE_FALSE(access);
        return access.error().message();
    }

    test_support::ScratchDirectory scratch;
    test_support::Loop loop;
    /// Without work between two calls the loop would take no more.
    asio::executor_work_guard<asio::any_io_executor> work{loop.executor()};
    Timestamp time = parse_rfc3339("2030-01-01T08:00:00Z").value();
    Cluster cluster;
    std::optional<Credentials> made;
};

}  // namespace opensandbox::kube::testing
