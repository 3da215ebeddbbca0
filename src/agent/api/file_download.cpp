#include "agent/api/file_routes.hpp"
#include "agent/files/range.hpp"
#include "agent/ground/reply.hpp"
#include "base/unique_fd.hpp"

#include <sys/stat.h>
#include <sys/uio.h>

#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <limits>
#include <memory>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

constexpr std::size_t kSentPiece = std::size_t{256} * 1024;

/// An open file to send from.
struct Source {
    UniqueFd fd;
    std::uint64_t size = 0;
    std::int64_t modified = 0;  ///< seconds since the epoch
    std::string name;
};

Result<std::shared_ptr<Source>> open_source(const std::string& path) {
    auto source = std::make_shared<Source>();
    // Not to wait for the other end of a pipe.
    source->fd.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!source->fd) return Error::from_errno(errno, path);
    struct stat info{};
    if (::fstat(source->fd.get(), &info) != 0) return Error::from_errno(errno, path);
    if (!S_ISREG(info.st_mode)) {
        return Error(ErrorCode::invalid_argument, std::string(code::kInvalidFile),
                     path + (S_ISDIR(info.st_mode) ? " is a directory" : " is not a regular file"));
    }
    source->size = static_cast<std::uint64_t>(info.st_size);
    source->modified = info.st_mtim.tv_sec;
    source->name = path.substr(path.find_last_of('/') + 1);
    return source;
}

/// Reads at an offset: without a thread when the page cache has it.
Awaitable<Result<std::size_t>> read_at(Services& services, std::shared_ptr<Source> source,
                                       std::shared_ptr<std::string> buffer, std::size_t size,
                                       std::uint64_t offset) {
    iovec target{buffer->data(), size};
    ssize_t got = ::preadv2(source->fd.get(), &target, 1, static_cast<off_t>(offset), RWF_NOWAIT);
    if (got > 0) co_return static_cast<std::size_t>(got);
    std::function<Result<std::size_t>()> work = [source, buffer, size,
                                                 offset]() -> Result<std::size_t> {
        while (true) {
            ssize_t count =
                ::pread(source->fd.get(), buffer->data(), size, static_cast<off_t>(offset));
            if (count >= 0) return static_cast<std::size_t>(count);
            if (errno != EINTR) return Error::from_errno(errno, "read the file");
        }
    };
    co_return co_await services.files.run(std::nullopt, std::move(work));
}

/// `attachment` with the name, percent-encoded twice over when it is not plain ASCII.
std::string disposition(const std::string& name) {
    bool plain = true;
    std::string quoted;
    for (char c : name) {
        auto byte = static_cast<unsigned char>(c);
        plain = plain && byte >= 0x20 && byte < 0x7f;
        if (c == '"' || c == '\\') quoted += '\\';
        quoted += c;
    }
    if (plain) return "attachment; filename=\"" + quoted + "\"";
    std::string encoded = http::percent_encode(name);
    return "attachment; filename=\"" + encoded + "\"; filename*=UTF-8''" + encoded;
}

/// Status 304 or 412 when a condition on the date says so, else 0.
int condition_status(const http::Fields& fields, std::int64_t modified) {
    if (auto text = fields.get("If-Unmodified-Since")) {
        auto date = parse_http_date(*text);
        if (date && modified > *date) return 412;
    }
    if (auto text = fields.get("If-Modified-Since")) {
        auto date = parse_http_date(*text);
        if (date && modified <= *date && !fields.has("If-None-Match")) return 304;
    }
    return 0;
}

ByteRange range_for(const http::Fields& fields, const Source& source) {
    if (auto text = fields.get("If-Range")) {
        // There are no entity tags here: only the very same date keeps the range.
        auto date = parse_http_date(*text);
        if (!date || *date != source.modified) return {};
    }
    return parse_range(fields.get("Range").value_or(""), source.size);
}

Awaitable<void> refuse_range(http::Exchange& exchange, ByteRange range, std::uint64_t size) {
    http::Response response = http::json_response(
        416, R"({"code":"UNKNOWN","message":"the range is not one of this file"})");
    if (range.kind == ByteRange::Kind::unsatisfiable) {
        response.head.fields.set("Content-Range", "bytes */" + std::to_string(size));
    }
    co_await exchange.respond(std::move(response));
}

/// Sends a long stretch without reading it; a thread waits for what is not in the page cache. How
/// much was sent: nothing where this cannot be done.
Awaitable<Result<std::uint64_t>> send_by_kernel(FileCall call, std::shared_ptr<Source> source,
                                                std::uint64_t first, std::uint64_t length) {
    http::FileWorker worker = [&files =
                                   call.services.files](std::function<Result<std::size_t>()> work) {
        return files.run(std::nullopt, std::move(work));
    };
    std::shared_ptr<const UniqueFd> file(source, &source->fd);
    auto sent = co_await call.exchange.send_file(std::move(file), first, length, std::move(worker));
    if (!sent && sent.error().code() == ErrorCode::unsupported) co_return std::uint64_t{0};
    co_return sent;
}

/// Sends `length` bytes from `first`. A file that shrinks meanwhile cuts the connection.
Awaitable<void> send_bytes(FileCall call, std::shared_ptr<Source> source, std::uint64_t first,
                           std::uint64_t length) {
    // A short one is out sooner than a thread begins.
    if (length > kSentPiece) {
        auto sent = co_await send_by_kernel(call, source, first, length);
        if (!sent) co_return;
        first += *sent;
        length -= *sent;
    }
    auto buffer = std::make_shared<std::string>(std::min<std::uint64_t>(kSentPiece, length), '\0');
    while (length > 0) {
        std::size_t size = std::min<std::uint64_t>(buffer->size(), length);
        Result<std::size_t> got = co_await read_at(call.services, source, buffer, size, first);
        if (!got || *got == 0) co_return;
        Status sent = co_await call.exchange.write(std::string_view(*buffer).substr(0, *got));
        if (!sent) co_return;
        first += *got;
        length -= *got;
    }
    Status finished = co_await call.exchange.finish();
    (void)finished;
}

/// Files of /proc and /sys say that they are empty: they are sent until they end.
Awaitable<void> send_to_end(FileCall call, std::shared_ptr<Source> source,
                            http::ResponseHead head) {
    auto buffer = std::make_shared<std::string>(kSentPiece, '\0');
    std::uint64_t offset = 0;
    while (true) {
        Result<std::size_t> got =
            co_await read_at(call.services, source, buffer, buffer->size(), offset);
        if (!got && offset == 0) {
            co_await reply_error(call.exchange, got.error());
            co_return;
        }
        if (!got) co_return;
        if (offset == 0) {
            http::ResponseHead begun = std::exchange(head, {});
            if (*got == 0) begun.fields.set("Content-Length", "0");
            Status started = co_await call.exchange.start(std::move(begun));
            if (!started) co_return;
        }
        if (*got == 0) break;
        Status sent = co_await call.exchange.write(std::string_view(*buffer).substr(0, *got));
        if (!sent) co_return;
        offset += *got;
    }
    Status finished = co_await call.exchange.finish();
    (void)finished;
}

Awaitable<void> send_file(FileCall call, std::shared_ptr<Source> source) {
    const http::Fields& fields = call.exchange.request().fields;
    http::ResponseHead head(200);
    head.fields.set("Content-Type", "application/octet-stream");
    head.fields.set("Content-Disposition", disposition(source->name));
    head.fields.set("Last-Modified", to_http_date(source->modified));
    head.fields.set("Accept-Ranges", "bytes");
    if (int status = condition_status(fields, source->modified); status != 0) {
        http::Response response(status);
        response.head.fields = std::move(head.fields);
        co_await call.exchange.respond(std::move(response));
        co_return;
    }
    ByteRange range = range_for(fields, *source);
    if (range.kind == ByteRange::Kind::malformed || range.kind == ByteRange::Kind::unsatisfiable) {
        co_await refuse_range(call.exchange, range, source->size);
        co_return;
    }
    if (source->size == 0) {
        co_await send_to_end(call, source, std::move(head));
        co_return;
    }
    std::uint64_t first = 0;
    std::uint64_t length = source->size;
    if (range.kind == ByteRange::Kind::part) {
        first = range.first;
        length = range.length;
        head.status = 206;
        head.fields.set("Content-Range", "bytes " + std::to_string(first) + "-" +
                                             std::to_string(first + length - 1) + "/" +
                                             std::to_string(source->size));
    }
    head.fields.set("Content-Length", std::to_string(length));
    Status started = co_await call.exchange.start(std::move(head));
    if (started) co_await send_bytes(call, source, first, length);
}

/// A 1-based count from the query.
Result<std::uint64_t> count_of(const http::Query& query, std::string_view name,
                               std::uint64_t fallback) {
    auto text = query.get(name);
    if (!text || text->empty()) return fallback;
    std::uint64_t count = 0;
    auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), count);
    if (error != std::errc() || end != text->data() + text->size() || count == 0) {
        return Error(ErrorCode::invalid_argument,
                     std::string(name) + ": must be an integer of 1 or more");
    }
    return count;
}

Awaitable<void> send_lines(FileCall call, std::shared_ptr<Source> source, LineWindow window) {
    http::ResponseHead head(200);
    head.fields.set("Content-Type", "text/plain; charset=utf-8");
    Status sent = co_await call.exchange.start(std::move(head));
    auto buffer = std::make_shared<std::string>(kSentPiece, '\0');
    std::uint64_t offset = 0;
    while (sent && !window.done()) {
        Result<std::size_t> got =
            co_await read_at(call.services, source, buffer, buffer->size(), offset);
        if (!got) co_return;
        if (*got == 0) break;
        offset += *got;
        std::string out;
        window.feed(std::string_view(*buffer).substr(0, *got), out);
        if (!out.empty()) sent = co_await call.exchange.write(out);
    }
    if (sent) sent = co_await call.exchange.finish();
}

}  // namespace

Awaitable<void> download_file(FileCall call) {
    Result<std::string> path = call.path_parameter();
    if (!path) {
        co_await reply_error(call.exchange, path.error());
        co_return;
    }
    http::Query query(call.exchange.request().query());
    bool by_lines = query.get("offset").has_value() || query.get("limit").has_value();
    Result<std::uint64_t> offset = count_of(query, "offset", 1);
    Result<std::uint64_t> limit =
        count_of(query, "limit", std::numeric_limits<std::uint64_t>::max());
    if (!offset || !limit) {
        co_await reply_error(call.exchange, offset ? limit.error() : offset.error());
        co_return;
    }
    if (by_lines && call.exchange.request().fields.has("Range")) {
        co_await reply_error(call.exchange, 400, code::kInvalidBody,
                             "offset and limit cannot be combined with a Range header");
        co_return;
    }
    std::function<Result<std::shared_ptr<Source>>()> open = [name = *path] {
        return open_source(name);
    };
    auto source = co_await call.services.files.run(call.identity, std::move(open));
    if (!source) {
        co_await reply_error(call.exchange, source.error());
    } else if (by_lines) {
        co_await send_lines(call, *source, LineWindow(*offset, *limit));
    } else {
        co_await send_file(call, *source);
    }
}

}  // namespace opensandbox::agent
