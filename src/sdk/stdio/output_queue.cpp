#include "sdk/stdio/output_queue.hpp"

#include "sdk/stdio/write_fully.hpp"

#include <boost/asio/post.hpp>

namespace opensandbox::sdk {

namespace {

constexpr std::size_t kRoom = 1024 * 1024;

struct Piece {
    int fd;
    std::string text;
};

}  // namespace

/// Used on the event loop only; the thread gets its pieces handed over and hands back a verdict.
struct OutputQueue::State {
    explicit State(asio::any_io_executor ex) : executor(ex), progress(ex) {}
    asio::any_io_executor executor;
    net::Event progress;
    std::vector<Piece> waiting;
    std::size_t unwritten = 0;
    bool writing = false;
    bool gone = false;
    bool given_up = false;
};

namespace {

template <class State>
void start_write(std::shared_ptr<State> state, asio::thread_pool& thread) {
    if (state->writing || state->waiting.empty()) return;
    state->writing = true;
    auto pieces = std::make_shared<std::vector<Piece>>(std::move(state->waiting));
    state->waiting.clear();
    asio::post(thread, [state, pieces, &thread] {
        bool written = true;
        std::size_t size = 0;
        for (const auto& piece : *pieces) {
            written = written && write_fully(piece.fd, piece.text);
            size += piece.text.size();
        }
        asio::post(state->executor, [state, written, size, &thread] {
            state->writing = false;
            state->unwritten -= size;
            state->gone = state->gone || !written;
            state->progress.notify();
            if (!state->given_up) start_write(state, thread);
        });
    });
}

}  // namespace

OutputQueue::OutputQueue(asio::any_io_executor executor)
    : state_(std::make_shared<State>(std::move(executor))) {}

OutputQueue::~OutputQueue() {
    state_->given_up = true;
}

void OutputQueue::append(int fd, std::string_view text) {
    if (state_->gone || text.empty()) return;
    auto& waiting = state_->waiting;
    if (!waiting.empty() && waiting.back().fd == fd) {
        waiting.back().text += text;
    } else {
        waiting.emplace_back(fd, std::string(text));
    }
    state_->unwritten += text.size();
    start_write(state_, thread_);
}

Awaitable<void> OutputQueue::make_room() {
    auto state = state_;
    while (state->unwritten > kRoom && !state->gone && !state->given_up) {
        co_await state->progress.wait();
    }
}

Awaitable<void> OutputQueue::flush() {
    auto state = state_;
    while (state->unwritten > 0 && !state->gone && !state->given_up) {
        co_await state->progress.wait();
    }
}

bool OutputQueue::reader_gone() const {
    return state_->gone;
}

void OutputQueue::give_up() {
    state_->given_up = true;
    state_->progress.notify();
}

}  // namespace opensandbox::sdk
