#include "agent/stream/event.hpp"

#include "base/json_string.hpp"

namespace opensandbox::agent {

void EventWriter::at(std::int64_t timestamp) {
    ending_ = ",\"timestamp\":";
    append_integer(ending_, timestamp);
    ending_ += "}\n\n";
}

void EventWriter::init(std::string_view id) {
    buffer_ += R"({"type":"init","text":)";
    append_json_string(buffer_, id);
    buffer_ += ending_;
}

void EventWriter::ping() {
    buffer_ += R"({"type":"ping","text":"pong")";
    buffer_ += ending_;
}

void EventWriter::output(Stream stream, std::string_view text) {
    if (text.empty()) return;
    buffer_ += stream == Stream::standard_output ? R"({"type":"stdout","text":)"
                                                 : R"({"type":"stderr","text":)";
    append_json_string(buffer_, text);
    buffer_ += ending_;
}

void EventWriter::error(std::string_view name, std::string_view value,
                        const std::vector<std::string>& traceback) {
    // The event's own members come first, as in every event; `error` closes it.
    buffer_ += R"({"type":"error")";
    buffer_.append(ending_, 0, ending_.size() - 3);
    buffer_ += R"(,"error":{"ename":)";
    append_json_string(buffer_, name);
    buffer_ += R"(,"evalue":)";
    append_json_string(buffer_, value);
    buffer_ += R"(,"traceback":[)";
    bool first = true;
    for (const std::string& line : traceback) {
        if (!first) buffer_ += ',';
        first = false;
        append_json_string(buffer_, line);
    }
    buffer_ += "]}}\n\n";
}

void EventWriter::status(std::string_view state) {
    buffer_ += R"({"type":"status","text":)";
    append_json_string(buffer_, state);
    buffer_ += ending_;
}

void EventWriter::execution_count(std::int64_t count) {
    buffer_ += R"({"type":"execution_count","execution_count":)";
    append_integer(buffer_, count);
    buffer_ += ending_;
}

void EventWriter::result(std::string_view mime) {
    buffer_ += R"({"type":"result")";
    buffer_.append(ending_, 0, ending_.size() - 3);
    buffer_ += ",\"results\":";
    buffer_ += mime;
    buffer_ += "}\n\n";
}

void EventWriter::complete(std::int64_t execution_time) {
    buffer_ += R"({"type":"execution_complete")";
    if (execution_time > 0) {
        buffer_ += ",\"execution_time\":";
        append_integer(buffer_, execution_time);
    }
    buffer_ += ending_;
}

}  // namespace opensandbox::agent
