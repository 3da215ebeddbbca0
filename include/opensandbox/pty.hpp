#pragma once

#include "opensandbox/error.hpp"

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace opensandbox::sdk {

class Transport;
struct Route;

/// What a terminal session runs.
struct TerminalOptions {
    std::string working_directory;  ///< made when it is missing; empty: the agent's own
    std::string command;            ///< for the shell's -c; empty: an interactive shell
};

struct TerminalInfo {
    std::string session_id;
    bool running = false;
    bool launch_attempted = false;    ///< a start of the shell was tried
    bool launch_failed = false;       ///< the last one did not succeed
    std::uint64_t output_offset = 0;  ///< bytes ever written
};

/// How to connect to a session.
struct AttachOptions {
    std::uint64_t since = 0;  ///< replay from this byte of output on; at most the last MiB is kept
    bool takeover = false;    ///< ends a client that is connected; else its presence is an error
    bool pipes = false;       ///< no terminal; only where the shell is started
    /// Reads beside the client that is connected; input is refused. `conflict` unless it runs.
    bool viewer = false;
};

/// What a session tells its client.
struct TerminalEvent {
    enum class Kind : std::uint8_t {
        connected,     ///< from here on output is live
        output,        ///< `data`
        error_output,  ///< `data`; with pipes only
        exit,          ///< `exit_code`; the last event
        taken_over,    ///< another client has the session; the last event
        other,         ///< nothing that concerns a user
    };
    TerminalEvent() = default;
    explicit TerminalEvent(Kind k, std::string d = {}) : kind(k), data(std::move(d)) {}
    Kind kind = Kind::other;
    std::string data;
    int exit_code = 0;  ///< -1 when a signal ended the shell
};

/// A client's connection to a session. Movable; dropping it leaves the shell running. One next()
/// may be in flight, beside any number of the others.
class TerminalConnection {
  public:
    TerminalConnection(TerminalConnection&&) noexcept;
    TerminalConnection& operator=(TerminalConnection&&) noexcept;
    ~TerminalConnection();

    /// `bad_gateway` when the connection broke (come back with `since` = offset()), `cancelled`
    /// after abort().
    boost::asio::awaitable<Result<TerminalEvent>> next();
    /// Keystrokes, of any bytes.
    boost::asio::awaitable<Status> send_input(std::string_view bytes);
    /// Both from 1 to 65535.
    boost::asio::awaitable<Status> resize(std::uint16_t columns, std::uint16_t rows);
    /// SIGINT, SIGTERM, SIGKILL, SIGQUIT or SIGHUP, to the shell and its foreground job.
    boost::asio::awaitable<Status> send_signal(std::string_view name) {
        return signal(std::string(name));
    }
    /// Closes the connection now; a next() in flight ends with `cancelled`.
    void abort();
    /// Where the output that next() has handed out ends, counted from the first byte ever written.
    [[nodiscard]] std::uint64_t offset() const;

  private:
    friend class Terminals;
    boost::asio::awaitable<Status> signal(std::string name);
    struct State;
    explicit TerminalConnection(std::shared_ptr<State> state);
    std::shared_ptr<State> state_;
};

/// The terminal sessions of one sandbox: shells that outlive their clients' connections. Cheap to
/// copy.
class Terminals {
  public:
    /// Makes a session; its shell starts with the first attach(). Returns its id.
    boost::asio::awaitable<Result<std::string>> create(TerminalOptions options = {}) const;
    boost::asio::awaitable<Result<TerminalInfo>> info(std::string session_id) const;
    /// `conflict` when a client is connected and `takeover` is not set. A shell that has ended is
    /// started again.
    boost::asio::awaitable<Result<TerminalConnection>> attach(std::string session_id,
                                                              AttachOptions options = {}) const;
    /// Kills the shell and forgets the session.
    boost::asio::awaitable<Status> remove(std::string session_id) const;

  private:
    friend class Sandbox;
    Terminals(std::shared_ptr<Transport> transport, std::shared_ptr<const Route> agent);
    std::shared_ptr<Transport> transport_;
    std::shared_ptr<const Route> agent_;
};

}  // namespace opensandbox::sdk
