#include "agent/command/registry.hpp"

#include "agent/command/execution.hpp"
#include "base/identifier.hpp"
#include "base/json_string.hpp"

namespace opensandbox::agent {
namespace {

constexpr std::size_t kMaxContent = std::size_t{16} * 1024;
constexpr std::uint64_t kMaxOutput = std::uint64_t{256} << 20;

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

std::shared_ptr<CommandRecord> CommandRegistry::add(std::string_view content) {
    auto record = std::make_shared<CommandRecord>();
    record->id = new_hex_id();
    std::string_view kept = content.substr(0, kMaxContent);
    if (kept.size() < content.size()) kept.remove_suffix(incomplete_utf8_tail(kept));
    record->content = kept;
    record->started_at = now();
    records_.emplace(record->id, record);
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
    if (ended_.size() > kMaxEnded) forget_oldest();
    if (!record->execution) return;
    streams_.push_back(record);
    if (streams_.size() > kMaxStreams) forget_oldest_stream();
}

void CommandRegistry::forget_oldest_stream() {
    if (auto record = streams_.front().lock()) record->execution.reset();
    streams_.pop_front();
}

void CommandRegistry::forget_oldest() {
    records_.erase(ended_.front()->id);
    ended_.pop_front();
}

std::shared_ptr<CommandRecord> CommandRegistry::find(const std::string& id) const {
    auto at = records_.find(id);
    return at == records_.end() ? nullptr : at->second;
}

void CommandRegistry::sweep(Timestamp time) {
    while (!ended_.empty() && *ended_.front()->finished_at + kRetention < time)
        forget_oldest();
    for (const auto& [id, record] : records_) {
        if (record->output) record->output->trim(kMaxOutput);
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
