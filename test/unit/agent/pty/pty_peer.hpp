#pragma once

#include "http/websocket_connection.hpp"
#include "json/document.hpp"
#include "support/event_loop.hpp"
#include "unit/agent/agent_process.hpp"

#include <catch2/catch.hpp>

namespace opensandbox::agent::testing {

/// The number behind `mark` in a text.
inline int number_after(const std::string& text, const std::string& mark) {
    std::size_t at = text.find(mark);
    REQUIRE(at != std::string::npos);
    return std::atoi(text.c_str() + at + mark.size());
}

/// What `seq` writes.
inline std::string numbers(int from, int to, const std::string& line_end) {
    std::string out;
    for (int i = from; i <= to; ++i)
        out += std::to_string(i) + line_end;
    return out;
}

/// A client of a terminal session that writes down all it hears.
class PtyPeer {
  public:
    PtyPeer(test_support::Loop& loop, const AgentProcess& agent)
        : agent_(agent), client_(loop.executor()) {}

    /// POST /pty; the id.
    static std::string create(const AgentProcess& agent, const std::string& body = {}) {
        Reply reply = agent.call("POST", "/pty", body);
        REQUIRE(reply.status == 201);
        auto document = json::parse(reply.body);
        REQUIRE(document.has_value());
        return std::string(document->at("session_id").as_string());
    }

    struct State {
        std::string session_id;
        bool running = false;
        std::int64_t offset = 0;
        bool launch_attempted = false;
        bool launch_failed = false;
        std::size_t members = 0;
    };
    /// GET /pty/{id}.
    static State describe(const AgentProcess& agent, const std::string& id) {
        Reply reply = agent.call("GET", "/pty/" + id);
        REQUIRE(reply.status == 200);
        auto document = json::parse(reply.body);
        REQUIRE(document.has_value());
        const json::object& members = document->as_object();
        State state;
        state.session_id = members.at("session_id").as_string();
        state.running = members.at("running").as_bool();
        state.offset = members.at("output_offset").as_int64();
        state.launch_attempted = members.at("launch_attempted").as_bool();
        state.launch_failed = members.at("launch_failed").as_bool();
        state.members = members.size();
        return state;
    }

    Awaitable<void> connect(std::string id, std::string query = {}) {
        std::string target = "/pty/" + id + "/ws" + (query.empty() ? "" : "?" + query);
        auto socket = co_await http::connect_websocket(
            client_, http::Origin("127.0.0.1", agent_.port()), std::move(target));
        if (!socket) throw std::runtime_error(socket.error().message());
        socket_ = std::move(*socket);
    }
    /// Goes away without a word.
    void vanish() { socket_.reset(); }

    Awaitable<void> type(std::string text) {
        std::string frame(1, '\0');
        frame += text;
        co_await socket_->send_binary(frame);
    }
    Awaitable<void> say(std::string text) { co_await socket_->send_text(text); }

    /// Takes one frame; false at the end of the connection.
    Awaitable<bool> next() {
        auto message = co_await socket_->receive();
        if (!message) {
            log += "broken ";
            co_return false;
        }
        using Kind = http::WebSocketMessage::Kind;
        if (message->kind == Kind::close) {
            close_code = message->code;
            close_reason = message->data;
            log += "close ";
            co_return false;
        }
        if (message->kind == Kind::text) {
            note_text(message->data);
        } else {
            note_binary(message->data);
        }
        co_return true;
    }
    template <class Condition>
    Awaitable<void> until(Condition condition) {
        while (!condition()) {
            bool more = co_await next();
            if (!more) throw std::runtime_error("the connection ended: " + log + output);
        }
    }
    Awaitable<void> until_output(std::string mark) {
        co_await until([&] { return output.find(mark) != std::string::npos; });
    }
    Awaitable<void> until_connected() {
        co_await until([&] { return log.find("connected") != std::string::npos; });
    }
    Awaitable<void> until_end() {
        while (co_await next()) {
        }
    }

    std::string output;  ///< 0x01
    std::string errors;  ///< 0x02
    std::string replay;  ///< bytes of 0x03
    std::int64_t replay_from = -1;
    std::string after_replay;  ///< the last replay and what came behind it
    std::string log;           ///< kinds of frames in the order of their first coming
    std::string session;
    std::string mode;
    std::string role;
    std::string error_code;
    std::size_t errors_told = 0;
    std::optional<std::int64_t> exit_code;
    int close_code = 0;
    std::string close_reason;
    std::size_t largest = 0;  ///< bytes of the largest output frame

  private:
    void note(const std::string& what) {
        if (!log.ends_with(what + " ")) log += what + " ";
    }
    void note_text(const std::string& text) {
        CHECK(text.ends_with("\n"));
        auto document = json::parse(text);
        REQUIRE(document.has_value());
        const json::object& members = document->as_object();
        std::string type(members.at("type").as_string());
        note(type);
        if (type == "connected") {
            mode = members.at("mode").as_string();
            role = members.at("role").as_string();
            session = members.at("session_id").as_string();
        }
        if (type == "exit") exit_code = members.at("exit_code").as_int64();
        if (type == "error") {
            error_code = members.at("code").as_string();
            ++errors_told;
        }
    }
    void note_binary(const std::string& frame) {
        REQUIRE_FALSE(frame.empty());
        if (frame[0] == 1 || frame[0] == 2) {
            (frame[0] == 1 ? output : errors).append(frame, 1);
            if (frame[0] == 1) after_replay.append(frame, 1);
            largest = std::max(largest, frame.size() - 1);
            note(frame[0] == 1 ? "stdout" : "stderr");
            return;
        }
        REQUIRE(frame[0] == 3);
        REQUIRE(frame.size() >= 9);
        note("replay");
        replay_from = 0;
        for (int i = 1; i <= 8; ++i)
            replay_from =
                replay_from << 8 | static_cast<unsigned char>(frame[static_cast<std::size_t>(i)]);
        replay.append(frame, 9);
        after_replay = frame.substr(9);
    }

    const AgentProcess& agent_;
    http::Client client_;
    std::unique_ptr<http::WebSocketConnection> socket_;
};

}  // namespace opensandbox::agent::testing
