#pragma once

#include "agent/pty/frames.hpp"
#include "agent/pty/session.hpp"
#include "http/websocket_connection.hpp"

#include <chrono>

namespace opensandbox::agent {

/// How a client wants to be connected (execd contract 8.2).
struct PtyClientOptions {
    PtyProcess::Mode mode = PtyProcess::Mode::terminal;
    std::uint64_t since = 0;  ///< offset of the first byte to replay
    bool takeover = false;
    bool viewer = false;   ///< reads only, beside the client that holds the session
    bool streams = false;  ///< ours: pipe mode replays what is which stream
};

/// One client of a session, from the request to the end of its connection.
class PtyClient : public std::enable_shared_from_this<PtyClient> {
  public:
    /// A viewer that tries to write so many times is gone.
    static constexpr std::size_t kMaxRefusals = 5;
    /// Largest frame taken from a client, bytes.
    static constexpr std::size_t kMaxFrame = std::size_t{4} << 20;

    PtyClient(const asio::any_io_executor& executor, std::shared_ptr<PtySession> session,
              PtyClientOptions options);

    /// Serves the connection to its end: takes the session (over), replays, then passes both ways.
    static Awaitable<void> run(std::shared_ptr<PtyClient> client,
                               std::unique_ptr<http::WebSocketConnection> socket);

    /// Offset up to which the client has taken output; empty before it is connected.
    [[nodiscard]] std::optional<std::uint64_t> position() const {
        return attached_ ? std::optional(position_) : std::nullopt;
    }
    /// There is more output, or the shell ended.
    void output_came();
    /// To a viewer: all output that it is for is there.
    void shell_ended(int code);
    /// Another client takes over: tells this one and ends it.
    void end_for_another();

  private:
    using steady_clock = std::chrono::steady_clock;

    Awaitable<void> serve();
    Awaitable<bool> enter();
    Awaitable<void> converse();
    Awaitable<bool> replay();
    Awaitable<bool> replay_streams(std::uint64_t end);
    Awaitable<void> pass_output();
    Awaitable<bool> send_piece(Replay::Piece piece, std::size_t size);
    Awaitable<void> tell_exit(int code);
    [[nodiscard]] std::uint64_t output_end() const;
    [[nodiscard]] bool missed_output() const;
    Awaitable<bool> reader_ended();
    Awaitable<bool> send_text(std::string text);
    Awaitable<bool> send_binary(std::string bytes);
    /// An error frame, then the end.
    Awaitable<void> fail(std::string code, std::string message);
    Awaitable<void> handle(pty::Request request);
    Awaitable<void> refuse_writing();
    Awaitable<void> write_input(std::string bytes);
    void stop();
    static Awaitable<void> read_input(std::shared_ptr<PtyClient> client);
    static Awaitable<void> keep_alive(std::shared_ptr<PtyClient> client);
    static Awaitable<void> say_taken_over(std::shared_ptr<PtyClient> client);

    asio::any_io_executor executor_;
    std::shared_ptr<PtySession> session_;
    PtyClientOptions options_;
    std::unique_ptr<http::WebSocketConnection> socket_;
    bool attached_ = false;
    bool parted_ = false;  ///< the client itself said that it is done
    std::uint64_t position_ = 0;
    net::Event wake_;        ///< output came, or the end
    net::Event input_room_;  ///< the shell takes input again, or the end
    net::Event tick_;        ///< ends the keep-alive
    net::Event reader_done_;
    bool reading_ = false;  ///< the reader runs
    bool over_ = false;
    bool replaced_ = false;          ///< another client took over
    std::size_t refusals_ = 0;       ///< of a viewer's frames
    std::optional<int> exit_;        ///< of the shell that a viewer watches
    std::uint64_t exit_offset_ = 0;  ///< where that one's output ended
    bool input_full_ = false;        ///< nothing is read from the client for now
    steady_clock::time_point read_since_ = steady_clock::now();
};

}  // namespace opensandbox::agent
