#pragma once

#include "base/identifier.hpp"
#include "http/router.hpp"
#include "http/websocket_connection.hpp"
#include "json/document.hpp"
#include "support/http_fixture.hpp"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace opensandbox::agent::testing {

/// A Jupyter server that does what a test tells it to: the REST calls that an agent makes, and
/// kernels whose answers come from a script.
class FakeJupyter {
  public:
    /// One WebSocket of a kernel, as the script sees it.
    class Kernel {
      public:
        Kernel(http::WebSocketConnection& connection, int number)
            : connection_(connection), number_(number) {}
        /// Of this connection, from 1.
        [[nodiscard]] int number() const { return number_; }
        /// The next execute_request: its msg_id and code. Empty id when the agent went away.
        struct Request {
            Request() = default;
            std::string id;
            std::string code;
        };
        Awaitable<Request> next() {
            Request request;
            auto received = co_await connection_.receive();
            if (!received || received->kind == http::WebSocketMessage::Kind::close) {
                co_return request;
            }
            auto document = json::parse(received->data);
            request.id = document->at("header").at("msg_id").as_string().c_str();
            request.code = document->at("content").at("code").as_string().c_str();
            co_return request;
        }
        Awaitable<void> say(std::string type, std::string parent, std::string content) {
            std::string text = message(type, parent, content);
            (void)co_await connection_.send_text(text);
        }
        Awaitable<void> busy(std::string parent) {
            co_await say("status", parent, R"({"execution_state":"busy"})");
        }
        Awaitable<void> idle(std::string parent) {
            co_await say("status", parent, R"({"execution_state":"idle"})");
        }
        Awaitable<void> reply(std::string parent) {
            co_await say("execute_reply", parent, R"({"status":"ok","execution_count":1})");
        }
        Awaitable<void> print(std::string parent, std::string text) {
            std::string content = R"({"name":"stdout","text":)";
            content += json::serialize(json::value(text)) + "}";
            co_await say("stream", parent, content);
        }
        http::WebSocketConnection& connection() { return connection_; }

        static std::string message(const std::string& type, const std::string& parent,
                                   const std::string& content) {
            std::string parent_header = parent.empty() ? "{}" : R"({"msg_id":")" + parent + "\"}";
            return R"({"header":{"msg_id":")" + new_hex_id() + R"(","msg_type":")" + type +
                   R"("},"msg_type":")" + type + R"(","parent_header":)" + parent_header +
                   R"(,"metadata":{},"channel":"iopub","content":)" + content + "}";
        }

      private:
        http::WebSocketConnection& connection_;
        int number_;
    };
    using Script = std::function<Awaitable<void>(Kernel&)>;

    explicit FakeJupyter(http::test::Loop& loop)
        : server(loop, [this](http::Exchange& exchange) { return answer(exchange); }) {
        route("GET", "/api/kernelspecs",
              [this](http::Exchange& exchange) { return give(exchange, 200, specs); });
        route("GET", "/api/sessions",
              [this](http::Exchange& exchange) { return list_sessions(exchange); });
        route("POST", "/api/sessions",
              [this](http::Exchange& exchange) { return create_session(exchange); });
        route("DELETE", "/api/sessions/{id}",
              [this](http::Exchange& exchange) { return delete_session(exchange); });
        route("GET", "/api/kernels/{id}",
              [this](http::Exchange& exchange) { return show_kernel(exchange); });
        route("POST", "/api/kernels/{id}/interrupt", [this](http::Exchange& exchange) {
            ++interrupts;
            return give(exchange, 204, {});
        });
        route("GET", "/api/kernels/{id}/channels",
              [this](http::Exchange& exchange) { return channels(exchange); });
    }

    [[nodiscard]] std::string url() const {
        return "http://127.0.0.1:" + std::to_string(server.port);
    }

    std::string token = "secret";
    std::string specs =
        R"({"default":"python3","kernelspecs":{
            "python3":{"name":"python3","spec":{"language":"python"}},
            "python":{"name":"python","spec":{"language":"python"}},
            "bash":{"name":"bash","spec":{"language":"bash"}}}})";
    /// Session id to its JSON.
    std::map<std::string, std::string> sessions;
    std::string state = "busy";  ///< of every kernel; empty: there are none
    Script script;               ///< of every WebSocket
    int connections = 0;
    int interrupts = 0;
    int spec_reads = 0;
    std::vector<std::string> created;  ///< bodies of POST /api/sessions

  private:
    void route(const char* method, const char* pattern, http::Handler handler) {
        router_.add(method, pattern, std::move(handler));
    }
    Awaitable<void> answer(http::Exchange& exchange) {
        http::RequestHead& request = exchange.request();
        if (request.fields.get("Authorization") != std::string_view("Token " + token)) {
            co_await give(exchange, 403, R"({"message":"Forbidden"})");
            co_return;
        }
        auto match = router_.lookup(request.method, request.path());
        if (!match.handler) {
            co_await give(exchange, 404, {});
            co_return;
        }
        exchange.parameters = match.parameters;
        co_await (*match.handler)(exchange);
    }
    static Awaitable<void> give(http::Exchange& exchange, int status, std::string body) {
        co_await exchange.respond(http::json_response(status, std::move(body)));
    }
    Awaitable<void> list_sessions(http::Exchange& exchange) {
        std::string list;
        for (const auto& [id, text] : sessions)
            list += (list.empty() ? "" : ",") + text;
        co_await give(exchange, 200, "[" + list + "]");
    }
    Awaitable<void> create_session(http::Exchange& exchange) {
        auto body = co_await http::read_all(exchange.body(), 100'000);
        created.push_back(*body);
        auto wanted = json::parse(*body);
        std::string id = new_uuid();
        std::string text = R"({"id":")" + id + R"(","path":)" +
                           json::serialize(wanted->at("path")) + R"(,"kernel":{"id":"kernel-)" +
                           id + R"(","name":)" + json::serialize(wanted->at("kernel").at("name")) +
                           "}}";
        sessions[id] = text;
        co_await give(exchange, 201, text);
    }
    Awaitable<void> delete_session(http::Exchange& exchange) {
        std::string id(exchange.parameter("id"));
        co_await give(exchange, sessions.erase(id) > 0 ? 204 : 404, {});
    }
    Awaitable<void> show_kernel(http::Exchange& exchange) {
        std::string body = R"({"execution_state":")" + state + "\"}";
        co_await give(exchange, state.empty() ? 404 : 200, std::move(body));
    }
    Awaitable<void> channels(http::Exchange& exchange) {
        if (state.empty()) {
            co_await give(exchange, 404, {});
            co_return;
        }
        auto connection = co_await http::accept_websocket(exchange);
        if (!connection) co_return;
        Kernel kernel(**connection, ++connections);
        co_await script(kernel);
    }

    http::Router router_;

  public:
    http::test::TestServer server;
};

}  // namespace opensandbox::agent::testing
