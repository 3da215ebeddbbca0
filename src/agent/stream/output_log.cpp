#include "agent/stream/output_log.hpp"

#include <algorithm>
#include <cerrno>
#include <unistd.h>

namespace opensandbox::agent {

namespace {

/// Two counts of all bytes ever written: the first tells of those that are being written, the
/// second of those that were. In between a reader must not trust what is overwritten.
struct Header {
    std::uint64_t begun = 0;
    std::uint64_t done = 0;
};

bool write_at(int file, const void* data, std::size_t size, std::uint64_t offset) {
    return ::pwrite(file, data, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
}

bool read_at(int file, void* data, std::size_t size, std::uint64_t offset) {
    return ::pread(file, data, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
}

}  // namespace

void OutputLog::append(std::string_view bytes, Timestamp at) {
    if (!file_ || bytes.empty()) return;
    const std::string stamp = to_rfc3339(at) + ' ';
    std::string text;
    while (!bytes.empty()) {
        if (line_begins_) text += stamp;
        const std::size_t end = std::min(bytes.find('\n'), bytes.size() - 1) + 1;
        text += bytes.substr(0, end);
        line_begins_ = bytes[end - 1] == '\n';
        bytes.remove_prefix(end);
    }
    const std::uint64_t total = total_ + text.size();
    bool good = write_at(file_.get(), &total, sizeof total, offsetof(Header, begun));
    std::string_view rest = text;
    if (rest.size() > kCapacity) rest.remove_prefix(rest.size() - kCapacity);
    for (std::uint64_t place = total - rest.size(); good && !rest.empty();) {
        const std::uint64_t at_ring = place % kCapacity;
        const std::size_t size = std::min<std::uint64_t>(rest.size(), kCapacity - at_ring);
        good = write_at(file_.get(), rest.data(), size, sizeof(Header) + at_ring);
        rest.remove_prefix(size);
        place += size;
    }
    good = good && write_at(file_.get(), &total, sizeof total, offsetof(Header, done));
    total_ = total;
    if (!good) file_.reset();
}

Result<std::string> OutputLog::read(int file) {
    Header before;
    if (!read_at(file, &before, sizeof before, 0)) return std::string();
    const std::uint64_t kept = std::min(before.done, kCapacity);
    std::string text(kept, '\0');
    const std::uint64_t first = before.done - kept;
    for (std::uint64_t place = first; place < before.done;) {
        const std::uint64_t at_ring = place % kCapacity;
        const std::uint64_t size = std::min(before.done - place, kCapacity - at_ring);
        if (!read_at(file, text.data() + (place - first), size, sizeof(Header) + at_ring)) {
            return Error::from_errno(errno, "read the output");
        }
        place += size;
    }
    Header after;
    if (!read_at(file, &after, sizeof after, 0)) return std::string();
    // Overwritten meanwhile, perhaps half.
    std::uint64_t valid_from = after.begun > kCapacity ? after.begun - kCapacity : 0;
    if (valid_from < first) valid_from = first;
    text.erase(0, std::min<std::uint64_t>(valid_from - first, text.size()));
    if (valid_from > 0) {
        const std::size_t end = text.find('\n');
        text.erase(0, end == std::string::npos ? text.size() : end + 1);
    }
    return text;
}

}  // namespace opensandbox::agent
