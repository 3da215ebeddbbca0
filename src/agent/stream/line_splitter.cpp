#include "agent/stream/line_splitter.hpp"

#include "base/json_string.hpp"

namespace opensandbox::agent {

void LineSplitter::feed(std::string_view bytes, const Emit& emit) {
    if (bytes.empty()) return;
    if (held_return_) {
        held_return_ = false;
        if (bytes.front() == '\n') {
            pending_ += '\n';
            bytes.remove_prefix(1);
        }
        emit_line(pending_, emit);
        pending_.clear();
    }
    // The next CR is looked up only once it was passed: most output has none.
    std::size_t start = 0;
    std::size_t next_return = bytes.find('\r');
    while (start < bytes.size()) {
        if (next_return != std::string_view::npos && next_return < start) {
            next_return = bytes.find('\r', start);
        }
        std::size_t end = bytes.substr(0, next_return).find('\n', start);
        if (end != std::string_view::npos) {
            ++end;
        } else if (next_return == std::string_view::npos) {
            append(bytes.substr(start), emit);
            return;
        } else if (next_return + 1 == bytes.size()) {
            append(bytes.substr(start), emit);
            held_return_ = true;
            return;
        } else {
            end = next_return + (bytes[next_return + 1] == '\n' ? 2 : 1);
        }
        if (pending_.empty()) {
            emit_line(bytes.substr(start, end - start), emit);
        } else {
            pending_.append(bytes.substr(start, end - start));
            emit_line(pending_, emit);
            pending_.clear();
        }
        start = end;
    }
}

void LineSplitter::flush_idle(const Emit& emit) {
    if (!has_fragment()) return;
    std::size_t tail = incomplete_utf8_tail(pending_);
    emit(std::string_view(pending_).substr(0, pending_.size() - tail));
    pending_.erase(0, pending_.size() - tail);
    held_return_ = false;
}

void LineSplitter::finish(const Emit& emit) {
    held_return_ = false;
    if (!pending_.empty()) emit_line(pending_, emit);
    pending_.clear();
    pending_.shrink_to_fit();
}

bool LineSplitter::has_fragment() const {
    return form_ == LineForm::exact && pending_.size() > incomplete_utf8_tail(pending_);
}

void LineSplitter::emit_line(std::string_view line, const Emit& emit) const {
    while (line.size() > max_fragment_) {
        std::size_t cut = cut_of(line);
        emit(line.substr(0, cut));
        line.remove_prefix(cut);
    }
    if (form_ == LineForm::stripped) {
        bool ended = !line.empty() && (line.back() == '\n' || line.back() == '\r');
        while (!line.empty() && (line.back() == '\n' || line.back() == '\r'))
            line.remove_suffix(1);
        if (line.empty() && ended) line = "\n";
    }
    if (!line.empty()) emit(line);
}

void LineSplitter::append(std::string_view bytes, const Emit& emit) {
    pending_.append(bytes);
    std::size_t done = 0;
    while (pending_.size() - done > max_fragment_) {
        std::string_view rest = std::string_view(pending_).substr(done);
        std::size_t cut = cut_of(rest);
        emit(rest.substr(0, cut));
        done += cut;
    }
    pending_.erase(0, done);
}

/// Where to cut a text longer than one fragment: before a character or a CRLF that would be split.
std::size_t LineSplitter::cut_of(std::string_view text) const {
    std::string_view head = text.substr(0, max_fragment_);
    std::size_t cut = head.size() - incomplete_utf8_tail(head);
    if (text[cut - 1] == '\r') --cut;
    return cut;
}

}  // namespace opensandbox::agent
