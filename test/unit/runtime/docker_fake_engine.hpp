#pragma once

#include "http/server.hpp"
#include "runtime/docker/engine/engine.hpp"
#include "support/catch_result.hpp"
#include "support/event_loop.hpp"
#include "support/scratch_directory.hpp"

#include <catch2/catch.hpp>
#include <sys/socket.h>
#include <sys/un.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace opensandbox::runtime::docker::test {

using test_support::Loop;

/// What a Docker 20.10 says to GET /version.
inline std::string version_document(const std::string& newest = "1.41",
                                    const std::string& oldest = "1.12") {
    return R"({"Version":"20.10.24","ApiVersion":")" + newest + R"(","MinAPIVersion":")" + oldest +
           R"(","Os":"linux","Arch":"amd64","KernelVersion":"6.1","Components":[{"Name":"Engine"}]})";
}

inline std::unique_ptr<net::Listener> listen_unix(Loop& loop, const std::string& path) {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(fd);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    REQUIRE(path.size() < sizeof(address.sun_path));
    path.copy(address.sun_path, path.size());
    ::unlink(path.c_str());
    REQUIRE(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    REQUIRE(::listen(fd.get(), 16) == 0);
    auto listener = net::adopt_listener(loop.executor(), std::move(fd));
    REQUIRE(listener.has_value());
    return std::move(*listener);
}

/// A Docker engine as far as a test needs one, on a Unix socket of its own: answers GET /version
/// by itself and all else as the test says, and remembers what it was asked.
class FakeEngine {
  public:
    struct Asked {
        std::string request;  ///< "GET /v1.41/info"
        http::Fields fields;
        std::string body;
    };

    explicit FakeEngine(Loop& loop)
        : loop_(loop), path_((directory_.path / "engine.sock").string()) {
        start();
    }

    void start() {
        server_ = std::make_unique<http::Server>(
            loop_.executor(), [this](http::Exchange& exchange) { return answer(exchange); });
        server_->serve(listen_unix(loop_, path_));
    }
    Awaitable<void> stop() {
        co_await server_->drain(std::chrono::milliseconds(0));
        server_.reset();
        ::unlink(path_.c_str());
    }

    /// The answer to a request, by method and target without the version.
    void on(const std::string& request, int status, std::string body = "",
            std::string type = "application/json") {
        http::Response response(status, std::move(type), std::move(body));
        answers_[request] = [response](http::Exchange& exchange) {
            return respond(exchange, response);
        };
    }
    void on(const std::string& request, http::Handler handler) {
        answers_[request] = std::move(handler);
    }
    [[nodiscard]] const Asked& last() const { return asked.back(); }
    [[nodiscard]] std::size_t count(const std::string& request) const {
        std::size_t found = 0;
        for (const Asked& one : asked) {
            if (one.request == request) ++found;
        }
        return found;
    }
    [[nodiscard]] EngineAddress address() const {
        EngineAddress address;
        address.socket_path = path_;
        address.text = "unix://" + path_;
        return address;
    }
    [[nodiscard]] const std::string& path() const { return path_; }

    std::string version = version_document();
    std::vector<Asked> asked;

  private:
    static Awaitable<void> respond(http::Exchange& exchange, http::Response response) {
        co_await exchange.respond(std::move(response));
    }
    static std::string without_version(const std::string& target) {
        if (!target.starts_with("/v1.")) return target;
        return target.substr(target.find('/', 1));
    }
    Awaitable<void> answer(http::Exchange& exchange) {
        std::string target = exchange.request().target;
        std::string method = exchange.request().method;
        auto body = co_await http::read_all(exchange.body(), 64 << 20);
        Asked one;
        one.request = method + " " + target;
        one.fields = exchange.request().fields;
        one.body = body ? *body : "broken: " + body.error().message();
        asked.push_back(std::move(one));
        auto known = answers_.find(method + " " + without_version(target));
        if (known != answers_.end()) {
            co_await known->second(exchange);
            co_return;
        }
        bool about = target == "/version";
        http::Response response(about ? 200 : 404, "application/json",
                                about ? version : R"({"message":"page not found"})");
        co_await exchange.respond(std::move(response));
    }

    Loop& loop_;
    test_support::ScratchDirectory directory_;
    std::string path_;
    std::map<std::string, http::Handler> answers_;
    std::unique_ptr<http::Server> server_;
};

/// An engine that says its version and then, byte by byte, what a test tells it to: the connection
/// is closed when the script ends.
class RawEngine {
  public:
    using Script = std::function<Awaitable<void>(net::Stream&)>;

    RawEngine(Loop& loop, Script script) : script_(std::move(script)) {
        path_ = (directory_.path / "engine.sock").string();
        listener_ = listen_unix(loop, path_);
        net::spawn(loop.executor(), accept(loop.executor()), "raw engine");
    }
    [[nodiscard]] EngineAddress address() const {
        EngineAddress address;
        address.socket_path = path_;
        address.text = "unix://" + path_;
        return address;
    }

  private:
    Awaitable<void> accept(asio::any_io_executor executor) {
        while (true) {
            auto stream = co_await listener_->accept();
            if (!stream) co_return;
            net::spawn(executor, run(std::move(*stream)), "raw engine's script");
        }
    }
    Awaitable<void> run(std::unique_ptr<net::Stream> stream) {
        std::string received;
        std::string piece(4096, '\0');
        while (true) {
            while (received.find("\r\n\r\n") == std::string::npos) {
                auto count = co_await stream->read_some(piece);
                if (!count || *count == 0) co_return;
                received.append(piece, 0, *count);
            }
            if (!received.starts_with("GET /version ")) break;
            received.clear();
            std::string body = version_document();
            std::string answer =
                "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
                body;
            auto written = co_await net::write_all(*stream, answer);
            if (!written) co_return;
        }
        co_await script_(*stream);
    }

    Script script_;
    test_support::ScratchDirectory directory_;
    std::string path_;
    std::unique_ptr<net::Listener> listener_;
};

}  // namespace opensandbox::runtime::docker::test
