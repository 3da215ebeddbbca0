#include "agent/stream/event_pump.hpp"

#include "base/clock.hpp"
#include "http/event_stream.hpp"

#include <algorithm>

namespace opensandbox::agent {
namespace {

using std::chrono::steady_clock;

constexpr std::size_t kReadSize = std::size_t{64} * 1024;
constexpr std::size_t kMuchPosted = std::size_t{256} * 1024;
constexpr std::chrono::seconds kPingEvery{3};
constexpr std::chrono::milliseconds kFragmentAfter{60};

}  // namespace

EventPump::EventPump(asio::any_io_executor executor, std::string id, LineForm form,
                     std::size_t keep)
    : executor_(executor),
      id_(std::move(id)),
      form_(form),
      started_(steady_clock::now()),
      outputs_{Output(EventWriter::Stream::standard_output, form),
               Output(EventWriter::Stream::standard_error, form)},
      room_(std::make_shared<net::Event>(executor)) {
    if (keep > 0) replay_.emplace(keep);
}

void EventPump::attach(EventWriter::Stream kind, std::shared_ptr<OutputPipe> pipe) {
    pipe->on_ready([weak = weak_from_this()] {
        if (auto self = weak.lock()) self->wake();
    });
    outputs_[kind == EventWriter::Stream::standard_output ? 0 : 1].pipe = std::move(pipe);
    wake();
}

void EventPump::wake() {
    if (turn_) turn_->wake->notify();
}

void EventPump::post(const std::function<void(EventWriter&)>& write) {
    posted_.at(to_millis(now()));
    write(posted_);
    wake();
}

Awaitable<void> EventPump::room() {
    auto self = shared_from_this();
    while (turn_ && posted_.buffer().size() > kMuchPosted)
        co_await self->room_->wait();
}

void EventPump::end(RunEnd end) {
    if (end_) return;
    end_ = std::move(end);
    ended_at_ = steady_clock::now();
    for (Output& output : outputs_) {
        if (output.pipe) output.pipe->limit_to_present();
    }
    wake();
}

bool EventPump::finished() const {
    return end_ && std::ranges::all_of(outputs_, [](const Output& output) {
               return !output.pipe || output.pipe->ended();
           });
}

std::shared_ptr<EventPump::Turn> EventPump::take_turn() {
    auto former = std::move(turn_);
    turn_ = std::make_shared<Turn>(std::make_shared<net::Event>(executor_));
    if (former) former->wake->notify();
    return turn_;
}

Awaitable<bool> EventPump::stream(std::shared_ptr<EventPump> pump, http::Exchange& exchange,
                                  std::uint64_t offset) {
    EventPump& self = *pump;
    auto turn = self.take_turn();
    self.begin(offset);
    // What begins the stream goes out with the head: one packet, one waking of the client.
    EventWriter opening = std::move(self.events_);
    self.events_ = {};
    Status sent = co_await exchange.start_with(http::event_stream_head(), opening.buffer());
    while (sent && self.holds(turn)) {
        if (!self.events_.empty()) {
            // Moved out: while it is being sent another reader may begin.
            EventWriter batch = std::move(self.events_);
            self.events_ = {};
            sent = co_await exchange.write(batch.buffer());
            if (!sent || !self.holds(turn)) break;
            batch.clear();
            self.events_ = std::move(batch);
        }
        self.do_timed_work();
        self.collect(true);
        self.take_posted();
        if (self.finished() && self.posted_.empty()) {
            self.write_end();
            sent = co_await exchange.finish_with(self.events_.buffer());
            self.events_.clear();
            if (self.holds(turn)) self.turn_.reset();
            co_return sent.has_value();
        }
        if (self.events_.empty()) co_await self.wait_for_more(turn);
    }
    if (sent) sent = co_await exchange.finish();
    if (self.holds(turn)) self.turn_.reset();
    self.room_->notify();
    co_return false;
}

Awaitable<void> EventPump::run_unread(std::shared_ptr<EventPump> pump) {
    EventPump& self = *pump;
    if (self.turn_) co_return;
    auto turn = self.take_turn();
    while (self.holds(turn) && !self.finished()) {
        self.posted_.clear();
        self.room_->notify();
        self.collect(false);
        if (self.arm_outputs()) continue;
        if (!self.finished()) co_await turn->wake->wait();
    }
    if (self.holds(turn)) self.turn_.reset();
}

void EventPump::begin(std::uint64_t offset) {
    next_ping_ = steady_clock::now() + kPingEvery;
    events_ = {};
    events_.at(to_millis(now()));
    events_.init(id_);
    events_.ping();
    if (replay_ && replay_->total() > 0) write_kept(offset);
}

/// The lines of what was kept are cut anew: the former reader may have gone in the middle of one.
void EventPump::write_kept(std::uint64_t offset) {
    for (Output& output : outputs_)
        output.splitter = LineSplitter(form_);
    while (auto piece = replay_->read(offset)) {
        Output& output = outputs_[piece->kind == EventWriter::Stream::standard_output ? 0 : 1];
        output.last_byte = steady_clock::now();
        output.splitter.feed(piece->bytes,
                             [&](std::string_view text) { events_.output(output.kind, text); });
        offset = piece->next;
    }
}

void EventPump::collect(bool encode) {
    if (encode) events_.at(to_millis(now()));
    for (Output& output : outputs_) {
        if (output.pipe && output.pipe->ready()) take(output, encode);
    }
}

void EventPump::take(Output& from, bool encode) {
    // The buffer exists from the first byte on: most runs say little and end.
    if (buffer_.empty()) buffer_.resize(kReadSize);
    std::string_view bytes = std::string_view(buffer_).substr(0, from.pipe->read(buffer_));
    if (replay_) replay_->append(from.kind, bytes);
    if (!encode) return;
    auto emit = [&](std::string_view text) { events_.output(from.kind, text); };
    if (!bytes.empty()) {
        from.last_byte = steady_clock::now();
        from.splitter.feed(bytes, emit);
    }
    if (from.pipe->ended()) from.splitter.finish(emit);
}

void EventPump::take_posted() {
    if (posted_.empty()) return;
    bool more = std::ranges::any_of(outputs_, [](const Output& output) {
        return output.pipe && !output.pipe->ended() && output.pipe->holds_bytes();
    });
    if (more) {
        for (Output& output : outputs_) {
            if (output.pipe) output.pipe->read_again();
        }
        wake();
        return;
    }
    for (Output& output : outputs_) {
        output.splitter.finish([&](std::string_view text) { events_.output(output.kind, text); });
    }
    events_.append(posted_);
    posted_.clear();
    room_->notify();
}

void EventPump::write_end() {
    events_.at(to_millis(now()));
    for (Output& output : outputs_) {
        output.splitter.finish([&](std::string_view text) { events_.output(output.kind, text); });
    }
    if (end_->failed) {
        events_.error(end_->name, end_->value, end_->traceback);
    } else {
        auto taken = ended_at_ - started_;
        events_.complete(std::chrono::duration_cast<std::chrono::milliseconds>(taken).count());
    }
}

bool EventPump::arm_outputs() {
    bool ready = false;
    for (Output& output : outputs_) {
        if (!output.pipe) continue;
        ready = ready || output.pipe->ready();
        output.pipe->arm();
    }
    return ready;
}

Awaitable<void> EventPump::wait_for_more(std::shared_ptr<Turn> turn) {
    if (arm_outputs() || (finished() && posted_.empty())) co_return;
    auto due = next_ping_;
    for (Output& output : outputs_) {
        if (!output.splitter.has_fragment()) continue;
        due = std::min(due, output.last_byte + kFragmentAfter);
    }
    auto left = due - steady_clock::now();
    if (left.count() > 0) co_await turn->wake->wait_for(left);
}

void EventPump::do_timed_work() {
    auto time = steady_clock::now();
    if (time >= next_ping_) {
        events_.at(to_millis(now()));
        events_.ping();
        next_ping_ = time + kPingEvery;
    }
    for (Output& output : outputs_) {
        if (!output.splitter.has_fragment() || time < output.last_byte + kFragmentAfter) continue;
        events_.at(to_millis(now()));
        output.splitter.flush_idle(
            [&](std::string_view text) { events_.output(output.kind, text); });
    }
}

}  // namespace opensandbox::agent
