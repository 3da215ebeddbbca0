#pragma once

#include "agent/stream/event.hpp"
#include "agent/stream/line_splitter.hpp"
#include "agent/stream/output_pipe.hpp"
#include "agent/stream/replay.hpp"
#include "http/exchange.hpp"
#include "net/task.hpp"

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace opensandbox::agent {

/// What the terminal event of a run says.
struct RunEnd {
    RunEnd() = default;
    RunEnd(std::string n, std::string v, std::vector<std::string> t)
        : failed(true), name(std::move(n)), value(std::move(v)), traceback(std::move(t)) {}
    bool failed = false;
    std::string name;
    std::string value;
    std::vector<std::string> traceback;
};

/// Makes one stream of events of a run (execd contract 2): what comes through its outputs, what its
/// owner posts, pings, and the terminal event, always last. What is in memory is bounded; a slow
/// reader slows whoever writes. One reader at a time; a run goes on without one.
///
/// The owner attaches the outputs, calls stream() for the reader, and end() once the run is over;
/// outputs that outlive the run (a kernel's) stay the owner's.
class EventPump : public std::enable_shared_from_this<EventPump> {
  public:
    /// `id` is the text of the init event. With `keep` (bytes) that much of the latest output is
    /// kept for readers that come later.
    EventPump(asio::any_io_executor executor, std::string id, LineForm form, std::size_t keep = 0);

    /// Reads this output from now on; before end().
    void attach(EventWriter::Stream kind, std::shared_ptr<OutputPipe> pipe);
    /// Puts further events behind all output that was written so far.
    void post(const std::function<void(EventWriter&)>& write);
    /// Waits until little of what was posted is unsent (or nobody reads it).
    Awaitable<void> room();
    /// The run is over: what its outputs hold by now is sent, then the terminal event.
    void end(RunEnd end);
    [[nodiscard]] bool ended() const { return end_.has_value(); }
    /// Whether it ended with an error.
    [[nodiscard]] bool failed() const { return end_ && end_->failed; }
    /// From its making to its end.
    [[nodiscard]] std::chrono::steady_clock::duration took() const { return ended_at_ - started_; }
    /// The outputs were read to their end.
    [[nodiscard]] bool finished() const;

    /// Answers the exchange with the stream from `offset` on, 0 for all. True when the whole of it
    /// was sent, false when the reader left or another one took its place.
    static Awaitable<bool> stream(std::shared_ptr<EventPump> pump, http::Exchange& exchange,
                                  std::uint64_t offset = 0);
    /// Goes on without a reader until the outputs end or one comes.
    static Awaitable<void> run_unread(std::shared_ptr<EventPump> pump);

    /// Where the output begins and ends that a later reader can have; null without `keep`.
    [[nodiscard]] const Replay* replay() const { return replay_ ? &*replay_ : nullptr; }

  private:
    struct Output {
        Output(EventWriter::Stream k, LineForm form) : kind(k), splitter(form) {}
        EventWriter::Stream kind;
        LineSplitter splitter;
        std::shared_ptr<OutputPipe> pipe;
        std::chrono::steady_clock::time_point last_byte{};
    };
    /// Whoever runs the loop, with or without a reader; a newer one takes its place.
    struct Turn {
        std::shared_ptr<net::Event> wake;
    };

    std::shared_ptr<Turn> take_turn();
    [[nodiscard]] bool holds(const std::shared_ptr<Turn>& turn) const { return turn_ == turn; }
    void wake();
    /// Reads once from each output that has something; without `encode` only keeps it.
    void collect(bool encode);
    void take(Output& from, bool encode);
    void begin(std::uint64_t offset);
    void write_kept(std::uint64_t offset);
    void take_posted();
    void write_end();
    /// Asks to be woken by output; true when some can be read already.
    bool arm_outputs();
    Awaitable<void> wait_for_more(std::shared_ptr<Turn> turn);
    /// Pings and unfinished lines that are due.
    void do_timed_work();

    asio::any_io_executor executor_;
    std::string id_;
    LineForm form_;
    std::optional<Replay> replay_;
    std::chrono::steady_clock::time_point started_;
    std::chrono::steady_clock::time_point ended_at_{};
    std::chrono::steady_clock::time_point next_ping_{};
    std::array<Output, 2> outputs_;
    EventWriter events_;
    EventWriter posted_;
    std::optional<RunEnd> end_;
    std::string buffer_;
    std::shared_ptr<Turn> turn_;
    std::shared_ptr<net::Event> room_;
};

}  // namespace opensandbox::agent
