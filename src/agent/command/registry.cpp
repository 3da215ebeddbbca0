#include "agent/command/registry.hpp"

#include "agent/command/execution.hpp"
#include "base/identifier.hpp"
#include "base/json_string.hpp"

namespace opensandbox::agent {
namespace {

constexpr std::size_t kMaxContent = std::size_t{16} * 1024;
constexpr std::uint64_t kMaxKeptOutput = std::uint64_t{256} << 20;

std::size_t text_size(const CommandRecord& record) {
    return record.content.size() + record.error.size();
}

}  // namespace

std::string CommandRecord::status_json() const {
    std::string out = "{\"id\":";
    append_json_string(out, id);
    if (!content.empty()) {
        out += ",\"content\":";
        append_json_string(out, content);
    }
    out += running() ? ",\"running\":true" : ",\"running\":false";
    if (exit_code) {
        out += ",\"exit_code\":";
        append_integer(out, *exit_code);
    }
    if (!error.empty()) {
        out += ",\"error\":";
        append_json_string(out, error);
    }
    out += ",\"started_at\":\"" + to_rfc3339(started_at) + "\"";
    if (finished_at) out += ",\"finished_at\":\"" + to_rfc3339(*finished_at) + "\"";
    out += '}';
    return out;
}

void CommandRecord::append_inventory_item(std::string& out) const {
    out += R"({"session":)";
    append_json_string(out, id);
    out += running() ? R"(,"running":true)" : R"(,"running":false)";
    out += background ? R"(,"background":true)" : R"(,"background":false)";
    out += R"(,"started_at":")" + to_rfc3339(started_at) + '"';
    if (finished_at) {
        out += R"(,"finished_at":")" + to_rfc3339(*finished_at) + R"(","exit_code":)";
        out += exit_code ? std::to_string(*exit_code) : "null";
        if (!error.empty()) {
            out += R"(,"error":)";
            append_json_string(out, error);
        }
    }
    out += '}';
}

std::shared_ptr<CommandRecord> CommandRegistry::add(std::string_view content) {
    auto record = std::make_shared<CommandRecord>();
    record->id = new_hex_id();
    std::string_view kept = content.substr(0, kMaxContent);
    if (kept.size() < content.size()) kept.remove_suffix(incomplete_utf8_tail(kept));
    record->content = kept;
    record->started_at = now();
    record->number = ++last_number_;
    records_.emplace(record->id, record);
    by_number_.emplace_hint(by_number_.end(), record->number, record.get());
    return record;
}

Status CommandRegistry::open_output(CommandRecord& record) {
    Result<std::shared_ptr<OutputFile>> file = files_.create(record.id);
    if (!file) return file.error();
    record.output = std::move(*file);
    return {};
}

void CommandRegistry::started(const std::shared_ptr<CommandRecord>& record,
                              std::shared_ptr<Child> child) {
    record->child = child;
    std::weak_ptr<CommandRecord> weak = record;
    child->on_exit([this, weak] {
        auto ended = weak.lock();
        if (!ended || !ended->child) return;
        ExitStatus status = *ended->child->status();
        ended->exit_code = status.client_code();
        if (!status.success()) ended->error = status.describe();
        finished(ended);
    });
}

void CommandRegistry::failed(const std::shared_ptr<CommandRecord>& record, std::string reason) {
    record->exit_code = 255;
    record->error = std::move(reason);
    finished(record);
}

void CommandRegistry::finished(const std::shared_ptr<CommandRecord>& record) {
    record->finished_at = now();
    record->child.reset();
    if (observer_) observer_(*record);
    if (record->output) record->output->release();
    ended_.push_back(record);
    ended_text_ += text_size(*record);
    while (ended_.size() > kMaxEnded || ended_text_ > kMaxEndedText)
        forget_oldest();
    if (!record->execution) return;
    streams_.push_back(record);
    if (streams_.size() > kMaxStreams) forget_oldest_stream();
}

void CommandRegistry::forget_oldest_stream() {
    if (auto record = streams_.front().lock()) record->execution.reset();
    streams_.pop_front();
}

void CommandRegistry::forget_oldest() {
    std::shared_ptr<CommandRecord> oldest = std::move(ended_.front());
    ended_.pop_front();
    ended_text_ -= text_size(*oldest);
    by_number_.erase(oldest->number);
    records_.erase(oldest->id);
}

std::shared_ptr<CommandRecord> CommandRegistry::find(const std::string& id) const {
    auto at = records_.find(id);
    return at == records_.end() ? nullptr : at->second;
}

void CommandRegistry::each_latest_first(
    std::optional<std::uint64_t> before,
    const std::function<bool(const CommandRecord&)>& take) const {
    auto at = before ? by_number_.lower_bound(*before) : by_number_.end();
    while (at != by_number_.begin()) {
        if (!take(*(--at)->second)) return;
    }
}

void CommandRegistry::sweep(Timestamp time) {
    while (!ended_.empty() && *ended_.front()->finished_at + kRetention < time)
        forget_oldest();
    for (const auto& [id, record] : records_) {
        if (record->output) record->output->trim(kMaxKeptOutput);
    }
}

std::size_t CommandRegistry::signal_all(int number) const {
    std::size_t running = 0;
    for (const auto& [id, record] : records_) {
        if (!record->child) continue;
        ++running;
        record->child->signal_group(number);
    }
    return running;
}

}  // namespace opensandbox::agent
