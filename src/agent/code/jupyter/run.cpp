#include "agent/code/jupyter/run.hpp"

#include "base/json_string.hpp"

namespace opensandbox::agent::jupyter {
namespace {

/// A longer text comes in several events.
constexpr std::size_t kLargestText = std::size_t{256} * 1024;

std::string_view text_of(const json::object& from, std::string_view name) {
    const json::value* member = json::find(from, name);
    return member && member->is_string() ? std::string_view(member->get_string())
                                         : std::string_view();
}

/// The first piece of a text, cut behind a line where there is one, never inside a character.
std::string_view first_piece(std::string_view text) {
    if (text.size() <= kLargestText) return text;
    std::string_view piece = text.substr(0, kLargestText);
    std::size_t line = piece.rfind('\n');
    if (line != std::string_view::npos) return piece.substr(0, line + 1);
    return piece.substr(0, piece.size() - incomplete_utf8_tail(piece));
}

}  // namespace

Run::Run(asio::any_io_executor executor, std::string message_id, std::shared_ptr<EventPump> pump)
    : message_id_(std::move(message_id)), pump_(std::move(pump)), changed_(std::move(executor)) {}

Awaitable<bool> Run::changed(std::chrono::nanoseconds limit) {
    co_return co_await changed_.wait_for(limit);
}

void Run::connection_lost() {
    lost_ = true;
    changed_.notify();
}

Awaitable<void> Run::take(Message message) {
    const bool ours = message.parent_id == message_id_;
    if (message.type == "status") {
        take_state(message, ours);
    } else if (ours && !over()) {
        taking_ = true;
        co_await forward(std::move(message));
        taking_ = false;
    }
    if (!ours && !died_) co_return;
    ++heard_;
    changed_.notify();
}

/// The server reports the death of a kernel for no request in particular.
void Run::take_state(const Message& message, bool ours) {
    std::string_view state = text_of(message.content, "execution_state");
    if (ours && state == "idle") idle_ = true;
    if (over() || (state != "restarting" && state != "dead")) return;
    died_ = true;
    std::string what = state == "dead" ? "the kernel died" : "the kernel died and was restarted";
    failure_ = RunEnd("DeadKernelError", what, {what});
}

Awaitable<void> Run::forward(Message message) {
    if (message.type == "stream") {
        co_await forward_text(std::move(message.content));
    } else if (message.type == "execute_result" || message.type == "display_data" ||
               message.type == "update_display_data") {
        forward_result(message);
        co_await pump_->room();
    } else if (message.type == "error") {
        take_failure(message.content);
    } else if (message.type == "execute_reply") {
        take_reply(message.content);
    }
}

Awaitable<void> Run::forward_text(json::object content) {
    auto stream = text_of(content, "name") == "stderr" ? EventWriter::Stream::standard_error
                                                       : EventWriter::Stream::standard_output;
    std::string_view rest = text_of(content, "text");
    while (!rest.empty()) {
        std::string_view piece = first_piece(rest);
        pump_->post([&](EventWriter& events) { events.output(stream, piece); });
        rest.remove_prefix(piece.size());
        co_await pump_->room();
    }
}

void Run::forward_result(const Message& message) {
    std::int64_t count = 0;
    if (message.type == "execute_result") {
        auto number = json::get_integer(message.content, "execution_count");
        if (number) count = number->value_or(0);
    }
    std::string results = mime_results(message.content);
    pump_->post([&](EventWriter& events) {
        if (count > 0) events.execution_count(count);
        if (!results.empty()) events.result(results);
    });
}

void Run::take_failure(const json::object& content) {
    if (failure_) return;
    std::string name(text_of(content, "ename"));
    std::vector<std::string> traceback;
    auto lines = json::get_strings(content, "traceback");
    if (lines) traceback = lines->value_or(std::vector<std::string>());
    failure_ = RunEnd(name.empty() ? "Error" : std::move(name),
                      std::string(text_of(content, "evalue")), std::move(traceback));
}

/// Some kernels tell a failure here only.
void Run::take_reply(const json::object& content) {
    std::string_view status = text_of(content, "status");
    replied_ = true;
    if (status == "error") take_failure(content);
    if ((status == "aborted" || status == "abort") && !failure_) {
        std::string what = "the kernel did not run this code: an earlier run failed";
        failure_ = RunEnd("Aborted", what, {what});
    }
}

RunEnd Run::take_end() {
    if (!failure_) return {};
    // Upstream's clients know the state from this event (execd contract 5.3).
    pump_->post([](EventWriter& events) { events.status("error"); });
    return std::move(*failure_);
}

}  // namespace opensandbox::agent::jupyter
