#include "cli/remote_shell.hpp"

#include "base/scope_exit.hpp"
#include "cli/terminal.hpp"
#include "net/task.hpp"
#include "sdk/stdio/output_queue.hpp"
#include "sdk/stdio/standard_streams.hpp"

#include <boost/asio/signal_set.hpp>

#include <array>
#include <csignal>
#include <unistd.h>

namespace opensandbox::cli {

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kReconnectFor = 30s;
constexpr std::size_t kKeys = 16 * 1024;

/// What the coroutines of one shell share; on one event loop.
struct ShellState {
    ShellState(asio::any_io_executor ex, bool escapes, bool only_view)
        : executor(ex), filter(escapes), connected(ex), resized(ex, SIGWINCH), view(only_view) {}

    /// Ends the connection for a reason of ours.
    void leave() {
        over = true;
        connected.notify();
        if (connection) connection->abort();
    }

    asio::any_io_executor executor;
    EscapeFilter filter;
    net::Event connected;
    asio::signal_set resized;
    std::optional<sdk::TerminalConnection> connection;
    std::unique_ptr<sdk::ByteReader> input;
    bool view;          ///< nothing is sent
    bool live = false;  ///< the connection takes input
    bool over = false;
    bool detached = false;
};

Awaitable<void> send_size(std::shared_ptr<ShellState> state) {
    const auto size = window_size();
    if (!size || !state->connection || state->view) co_return;
    auto ignored = co_await state->connection->resize(size->columns, size->rows);
    static_cast<void>(ignored);  // a connection that broke shows where it is read
}

void follow_size(const std::shared_ptr<ShellState>& state) {
    state->resized.async_wait([state](boost::system::error_code failed, int) {
        if (failed || state->over) return;
        if (state->live) net::spawn(state->executor, send_size(state), "resize");
        follow_size(state);
    });
}

/// Passes keystrokes on until the shell is left. Ended by cancellation.
Awaitable<void> pass_input(std::shared_ptr<ShellState> state) {
    std::string buffer(kKeys, '\0');
    while (!state->over) {
        auto count = co_await state->input->read_some(buffer);
        if (state->over) co_return;
        if (!count || *count == 0) {  // the terminal went away
            state->detached = true;
            state->leave();
            co_return;
        }
        EscapeFilter::Keys keys = state->filter.feed(std::string_view(buffer).substr(0, *count));
        while (!state->live && !state->over && !keys.detach)
            co_await state->connected.wait();
        if (state->live && !keys.send.empty() && !state->view) {
            auto ignored = co_await state->connection->send_input(keys.send);
            static_cast<void>(ignored);
        }
        if (keys.detach) {
            state->detached = true;
            state->leave();
        }
    }
}

/// How one connection ended.
struct Ended {
    std::optional<int> exit_code;
    bool taken_over = false;
    std::optional<sdk::Error> error;
};

Awaitable<Ended> pass_output(std::shared_ptr<ShellState> state, sdk::OutputQueue& output) {
    using Kind = sdk::TerminalEvent::Kind;
    Ended ended;
    for (;;) {
        auto event = co_await state->connection->next();
        if (!event) {
            ended.error = event.error();
            co_return ended;
        }
        switch (event->kind) {
            case Kind::connected:
                co_await send_size(state);
                state->live = true;
                state->connected.notify();
                break;
            case Kind::output: output.append(STDOUT_FILENO, event->data); break;
            case Kind::error_output: output.append(STDERR_FILENO, event->data); break;
            case Kind::exit: ended.exit_code = event->exit_code; co_return ended;
            case Kind::taken_over: ended.taken_over = true; co_return ended;
            case Kind::other: break;
        }
        co_await output.make_room();
    }
}

/// Connects, again and again for a while when it was connected before.
Awaitable<sdk::Result<sdk::TerminalConnection>> attach(std::shared_ptr<ShellState> state,
                                                       sdk::Terminals terminals,
                                                       std::string session,
                                                       std::optional<std::uint64_t> lost_at,
                                                       std::uint64_t since) {
    const auto deadline = Clock::now() + kReconnectFor;
    std::chrono::milliseconds pause = 100ms;
    for (;;) {
        sdk::AttachOptions options;
        options.since = lost_at.value_or(since);
        options.takeover = !state->view;
        options.viewer = state->view;
        auto connection = co_await terminals.attach(session, options);
        if (connection || !lost_at || state->over) co_return connection;
        const auto code = connection.error().code();
        const bool may_pass = code == sdk::ErrorCode::unavailable ||
                              code == sdk::ErrorCode::bad_gateway ||
                              code == sdk::ErrorCode::timeout;
        if (!may_pass || Clock::now() > deadline) co_return connection.error();
        co_await net::sleep_for(pause);
        pause = std::min(pause * 2, std::chrono::milliseconds(2000));
    }
}

Outcome after(Invocation& invocation, const ShellRequest& request, const ShellState& state,
              const Ended& ended) {
    const std::string come_back = "'" + request.attach_command + "' comes back to it.";
    const int received = invocation.interrupts().received();
    if (state.detached || received != 0) {
        invocation.terminal().print_note("Detached. The shell runs on: " + come_back);
        return received != 0 ? 128 + received : kSuccess;
    }
    if (ended.taken_over) {
        invocation.terminal().print_note("Another client took over the shell. " + come_back);
        return kFailed;
    }
    if (ended.exit_code) {
        if (*ended.exit_code >= 0) return *ended.exit_code;
        invocation.terminal().print_note("A signal ended the shell.");
        return kFailed;
    }
    return ended.error->within("shell " + request.session);
}

Awaitable<Ended> keep_connected(Invocation& invocation, sdk::Terminals terminals,
                                std::string session, std::shared_ptr<ShellState> state,
                                sdk::OutputQueue& output, std::uint64_t since) {
    std::optional<std::uint64_t> lost_at;
    for (;;) {
        auto connection = co_await attach(state, terminals, session, lost_at, since);
        if (!connection || state->over) {
            Ended ended;
            if (!connection) ended.error = connection.error();
            co_return ended;
        }
        state->connection.emplace(std::move(*connection));
        Ended ended = co_await pass_output(state, output);
        state->live = false;
        lost_at = state->connection->offset();
        const bool broke = ended.error && ended.error->code() == sdk::ErrorCode::bad_gateway;
        if (state->over || !broke) co_return ended;
        co_await output.flush();
        invocation.terminal().print_note("\r\n[the connection broke; trying again]\r");
    }
}

}  // namespace

Awaitable<Outcome> run_remote_shell(Invocation& invocation, sdk::Terminals terminals,
                                    ShellRequest request) {
    std::uint64_t since = 0;
    if (!request.replay) {
        auto info = co_await terminals.info(request.session);
        if (!info) co_return info.error();
        since = info->output_offset;
    }
    auto input = sdk::open_standard_input(invocation.executor());
    if (!input) co_return input.error();
    auto raw = RawTerminal::enter();
    if (!raw) co_return raw.error();

    auto state = std::make_shared<ShellState>(invocation.executor(), request.escapes, request.view);
    state->input = std::move(*input);
    Interrupts& interrupts = invocation.interrupts();
    interrupts.handle([state] { state->leave(); });
    RawTerminal* mode = raw->get();
    interrupts.before_forced_end([mode] { mode->restore(); });
    ScopeExit released([&] {
        interrupts.handle({});
        interrupts.before_forced_end({});
    });
    follow_size(state);
    auto reading = net::spawn_cancellable(invocation.executor(), pass_input(state), "keystrokes");

    sdk::OutputQueue output(invocation.executor());
    Ended ended =
        co_await keep_connected(invocation, terminals, request.session, state, output, since);
    state->over = true;
    state->connected.notify();
    reading->emit(asio::cancellation_type::terminal);
    state->resized.cancel();
    co_await output.flush();
    (*raw)->restore();
    if (state->detached || interrupts.received() != 0) invocation.terminal().print("\r\n");
    if (ended.exit_code && !request.view) {
        auto ignored = co_await terminals.remove(request.session);
        static_cast<void>(ignored);
    }
    co_return after(invocation, request, *state, ended);
}

}  // namespace opensandbox::cli
