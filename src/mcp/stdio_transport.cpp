#include "mcp/stdio_transport.hpp"

#include "base/log.hpp"
#include "sdk/stdio/standard_streams.hpp"

#include <unistd.h>

namespace opensandbox::mcp {

namespace {

constexpr std::size_t kPiece = 64 * 1024;
constexpr std::chrono::seconds kEndGrace{5};
constexpr std::chrono::seconds kUndoGrace{5};

/// Standard output: messages in the order they were made, one a line.
class LineOutput : public std::enable_shared_from_this<LineOutput> {
  public:
    explicit LineOutput(asio::any_io_executor executor) : queue_(std::move(executor)) {}
    void send(std::string message) {
        message += '\n';
        queue_.append(STDOUT_FILENO, message);
    }
    Awaitable<void> make_room() { return queue_.make_room(); }
    Awaitable<void> flush() { return queue_.flush(); }
    [[nodiscard]] bool gone() const { return queue_.reader_gone(); }

  private:
    sdk::OutputQueue queue_;
};

class LineOutlet : public Outlet {
  public:
    explicit LineOutlet(std::shared_ptr<LineOutput> output) : output_(std::move(output)) {}
    void notify(std::string message) override { output_->send(std::move(message)); }
    void reply(std::string message) override { output_->send(std::move(message)); }
    void abandon() override {}

  private:
    std::shared_ptr<LineOutput> output_;
};

/// Gathers the answers to a batch: they go out as one array.
class BatchOutlet : public Outlet {
  public:
    BatchOutlet(std::shared_ptr<LineOutput> output, std::size_t expected)
        : output_(std::move(output)), expected_(expected) {}
    void notify(std::string message) override { output_->send(std::move(message)); }
    void reply(std::string message) override {
        answers_ += (answers_.empty() ? "[" : ",") + message;
        count_down();
    }
    void abandon() override { count_down(); }

  private:
    void count_down() {
        if (--expected_ == 0 && !answers_.empty()) output_->send(answers_ + "]");
    }

    std::shared_ptr<LineOutput> output_;
    std::size_t expected_;
    std::string answers_;
};

bool wants_line(const Received& received) {
    const auto* message = std::get_if<Message>(&received);
    return message == nullptr || message->kind == Message::Kind::request;
}

void take(Session& session, std::string_view line, const std::shared_ptr<LineOutput>& output) {
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) return;
    const Payload payload = parse_payload(line);
    std::shared_ptr<Outlet> outlet = std::make_shared<LineOutlet>(output);
    // Batches were part of the protocol in this version alone.
    if (payload.batch && session.version() != "2025-03-26") {
        outlet->reply(error_text(nullptr, kInvalidRequest,
                                 "batches are part of protocol version 2025-03-26 only"));
        return;
    }
    if (payload.batch) {
        const auto expected = std::ranges::count_if(payload.items, wants_line);
        outlet = std::make_shared<BatchOutlet>(output, static_cast<std::size_t>(expected));
    }
    for (const Received& item : payload.items)
        session.take(item, outlet);
}

void take_lines(LineReader& lines, Session& session, const std::shared_ptr<LineOutput>& output) {
    std::string line;
    for (;;) {
        const auto found = lines.next(line);
        if (found == LineReader::Found::nothing) return;
        if (found == LineReader::Found::line) {
            take(session, line, output);
        } else {
            output->send(
                error_text(nullptr, kInvalidRequest,
                           "the message has more than " + std::to_string(kMaxMessage) + " bytes"));
        }
    }
}

}  // namespace

void LineReader::feed(std::string_view bytes) {
    buffer_ += bytes;
}

LineReader::Found LineReader::next(std::string& line) {
    const auto end = buffer_.find('\n', scanned_);
    if (end == std::string::npos) {
        scanned_ = buffer_.size();
        if (scanned_ > limit_) {
            skipping_ = true;
            buffer_.clear();
            scanned_ = 0;
        }
        return Found::nothing;
    }
    const bool too_long = skipping_ || end > limit_;
    if (!too_long) line.assign(buffer_, 0, end);
    buffer_.erase(0, end + 1);
    scanned_ = 0;
    skipping_ = false;
    return too_long ? Found::too_long : Found::line;
}

LineReader::Found LineReader::rest(std::string& line) {
    if (skipping_) return Found::too_long;
    if (buffer_.empty()) return Found::nothing;
    line = std::move(buffer_);
    buffer_.clear();
    return Found::line;
}

Awaitable<void> serve_stdio(asio::any_io_executor executor, std::shared_ptr<Session> session) {
    auto input = sdk::open_standard_input(executor);
    if (!input) {
        log::error("cannot read standard input", {{"error", input.error().message()}});
        co_return;
    }
    auto output = std::make_shared<LineOutput>(executor);
    LineReader lines(kMaxMessage);
    std::string piece(kPiece, '\0');
    while (!output->gone()) {
        auto count = co_await (*input)->read_some(piece);
        if (!count || *count == 0) break;
        lines.feed(std::string_view(piece).substr(0, *count));
        take_lines(lines, *session, output);
        co_await output->make_room();
    }
    std::string line;
    if (lines.rest(line) == LineReader::Found::line) take(*session, line, output);
    if (!co_await session->idle_within(kEndGrace)) {
        session->cancel_all();
        co_await session->idle_within(kUndoGrace);
    }
    co_await output->flush();
}

}  // namespace opensandbox::mcp
