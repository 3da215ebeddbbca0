#include "agent/api/file_routes.hpp"
#include "agent/api/file_stop.hpp"
#include "agent/files/operations.hpp"
#include "agent/ground/reply.hpp"
#include "http/body_pipe.hpp"
#include "image/directory_archive.hpp"

#include <charconv>
#include <memory>

namespace opensandbox::agent {
namespace {

constexpr std::size_t kPiece = std::size_t{256} * 1024;

/// Unlike those of the other routes these paths are taken as they stand: an archive may hold any
/// name.
Result<std::string> literal_path(const http::Query& query) {
    auto path = query.get("path");
    if (!path || path->empty()) {
        return Error(ErrorCode::invalid_argument, std::string(code::kMissingQuery),
                     "query parameter path is required");
    }
    if (!path->starts_with('/')) return invalid("path: must be absolute");
    if (path->find('\0') != std::string_view::npos) return invalid("path: must not hold NUL");
    std::string out(*path);
    while (out.size() > 1 && out.ends_with('/'))
        out.pop_back();
    return out;
}

Result<UnpackRequest> unpack_request(const http::Query& query) {
    auto path = literal_path(query);
    if (!path) return path.error();
    UnpackRequest request;
    request.directory = std::move(*path);
    request.permission.owner = std::string(query.get("owner").value_or(""));
    request.permission.group = std::string(query.get("group").value_or(""));
    if (const auto text = query.get("mode"); text && !text->empty()) {
        unsigned mode = 0;
        const auto [end, error] =
            std::from_chars(text->data(), text->data() + text->size(), mode, 8);
        if (error != std::errc() || end != text->data() + text->size() || mode > 07777) {
            return invalid("mode: must be octal digits up to 7777");
        }
        request.permission.mode = mode;
    }
    return request;
}

/// The body as a thread reads it.
class PipeInput final : public image::InputStream {
  public:
    explicit PipeInput(std::shared_ptr<http::BodyPipe> pipe) : pipe_(std::move(pipe)) {}
    Result<std::size_t> read(std::span<char> into) override { return pipe_->read(into); }

  private:
    std::shared_ptr<http::BodyPipe> pipe_;
};

Awaitable<void> feed(std::shared_ptr<http::BodyPipe> pipe, http::BodyReader* body,
                     std::shared_ptr<net::Event> fed) {
    co_await pipe->pump(*body);
    fed->notify();
}

Awaitable<Status> unpack_body(FileCall call, UnpackRequest request) {
    auto executor = co_await asio::this_coro::executor;
    auto pipe = std::make_shared<http::BodyPipe>(executor);
    auto fed = std::make_shared<net::Event>(executor);
    std::function<Status()> work = [pipe, request = std::move(request)]() -> Status {
        PipeInput input(pipe);
        Status done = unpack_archive(input, request);
        pipe->close();
        return done;
    };
    FilePool::FinishHook hook(call.services.files, [pipe] {
        pipe->fail(Error(ErrorCode::cancelled, "the agent is stopping"));
    });
    net::spawn(executor, feed(pipe, &call.exchange.body(), fed), "archive body");
    Status done = co_await call.services.files.run<void>(call.identity, std::move(work));
    pipe->close();  // the work may not have begun
    co_await fed->wait();
    co_return done;
}

using OpenArchive = std::shared_ptr<std::optional<image::DirectoryArchive>>;

Awaitable<Result<std::size_t>> read_piece(FileCall call, OpenArchive archive,
                                          std::shared_ptr<std::string> piece) {
    std::function<Result<std::size_t>()> work = [archive, piece]() -> Result<std::size_t> {
        std::size_t have = 0;
        while (have < piece->size()) {
            auto count = (*archive)->read(std::span<char>(*piece).subspan(have));
            if (!count) return count;
            if (*count == 0) break;
            have += *count;
        }
        return have;
    };
    co_return co_await call.services.files.run(call.identity, std::move(work));
}

}  // namespace

Awaitable<void> unpack_files(FileCall call) {
    http::Query query(call.exchange.request().query());
    Result<UnpackRequest> request = unpack_request(query);
    if (!request) {
        co_await reply_error(call.exchange, request.error());
        co_return;
    }
    Status done = co_await unpack_body(call, std::move(*request));
    if (done) {
        co_await reply_empty(call.exchange);
    } else {
        co_await reply_error(call.exchange, done.error());
    }
}

Awaitable<void> pack_files(FileCall call) {
    http::Query query(call.exchange.request().query());
    Result<std::string> path = literal_path(query);
    if (!path) {
        co_await reply_error(call.exchange, path.error());
        co_return;
    }
    std::string name(query.get("name").value_or(""));
    if (name.find('/') != std::string::npos || name == "." || name == "..") {
        Error refused = invalid("name: must be one part of a path");
        co_await reply_error(call.exchange, refused);
        co_return;
    }
    auto archive = std::make_shared<std::optional<image::DirectoryArchive>>();
    FileStop stop(call);
    std::function<Status()> open = [archive, path = *path, name, token = stop.token()]() -> Status {
        auto opened = image::DirectoryArchive::open_entry(path, name, token);
        if (!opened) return opened.error();
        archive->emplace(std::move(*opened));
        return {};
    };
    Status opened = co_await call.services.files.run<void>(call.identity, std::move(open));
    auto piece = std::make_shared<std::string>(kPiece, '\0');
    Result<std::size_t> count =
        opened ? co_await read_piece(call, archive, piece) : Result<std::size_t>(opened.error());
    if (!count) {
        co_await reply_error(call.exchange, count.error());
        co_return;
    }
    http::ResponseHead head(200);
    head.fields.set("Content-Type", "application/x-tar");
    Status sent = co_await call.exchange.start(std::move(head));
    while (sent && *count > 0) {
        sent = co_await call.exchange.write(std::string_view(*piece).substr(0, *count));
        if (!sent) co_return;
        count = co_await read_piece(call, archive, piece);
        // An archive cut short must not look whole.
        if (!count) co_return;
    }
    if (sent) sent = co_await call.exchange.finish();
}

}  // namespace opensandbox::agent
