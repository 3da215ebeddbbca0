#include "base/unique_fd.hpp"
#include "net/task.hpp"
#include "registry/blobs.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace opensandbox::registry {
namespace {

/// A part of a file as a request's body.
class FilePart final : public http::BodyReader {
  public:
    FilePart(std::shared_ptr<const UniqueFd> file, asio::thread_pool& pool, std::uint64_t offset,
             std::uint64_t size, const UploadRequest& request)
        : file_(std::move(file)),
          pool_(pool),
          offset_(offset),
          size_(size),
          end_(offset + size),
          request_(request) {}

    Awaitable<Result<std::size_t>> read_some(std::span<char> into) override {
        using Count = Result<std::size_t>;
        if (request_.cancelled && *request_.cancelled) {
            co_return Error(ErrorCode::cancelled, "another layer failed");
        }
        std::size_t wanted = std::min<std::uint64_t>(into.size(), end_ - offset_);
        if (wanted == 0) co_return std::size_t{0};
        // The work owns its buffer: it may outlive this request.
        auto buffer = std::make_shared<std::string>(wanted, '\0');
        std::function<Count()> work = [file = file_, buffer, offset = offset_]() -> Count {
            ssize_t count =
                ::pread(file->get(), buffer->data(), buffer->size(), static_cast<off_t>(offset));
            if (count < 0) return Error::from_errno(errno, "read a packed layer");
            return static_cast<std::size_t>(count);
        };
        auto count = co_await net::run_blocking<Count>(pool_, std::move(work));
        if (!count) co_return count;
        if (*count == 0) co_return Error(ErrorCode::io, "a packed layer became shorter");
        std::memcpy(into.data(), buffer->data(), *count);
        offset_ += *count;
        if (request_.on_progress) request_.on_progress(offset_);
        co_return *count;
    }
    std::optional<std::uint64_t> content_length() const override { return size_; }

  private:
    std::shared_ptr<const UniqueFd> file_;
    asio::thread_pool& pool_;
    std::uint64_t offset_;
    std::uint64_t size_;
    std::uint64_t end_;
    const UploadRequest& request_;
};

class Upload {
  public:
    Upload(Session& session, asio::thread_pool& pool, UploadRequest request)
        : session_(session), pool_(pool), request_(std::move(request)) {}

    Awaitable<Status> run();

  private:
    Awaitable<Status> begin();
    Awaitable<Status> send_chunk();
    /// Where the registry stands after a failure.
    Awaitable<Status> ask();
    Awaitable<Status> end();
    Awaitable<Status> step();
    void follow(const http::ResponseHead& head) {
        if (auto location = head.fields.get("Location")) location_ = *location;
    }

    Session& session_;
    asio::thread_pool& pool_;
    UploadRequest request_;
    std::shared_ptr<const UniqueFd> file_;
    std::string location_;  ///< empty: no upload under way
    bool uncertain_ = false;
    std::uint64_t sent_ = 0;
    bool whole_ = false;
};

Awaitable<Status> Upload::begin() {
    Call call("POST", session_.path("blobs/uploads/"));
    auto response = co_await session_.send(std::move(call));
    if (!response) co_return response.error();
    location_.clear();
    follow((*response)->head());
    sent_ = 0;
    if (location_.empty()) {
        co_return Error(ErrorCode::bad_gateway, "the registry names no place for the upload");
    }
    co_return Status();
}

Awaitable<Status> Upload::send_chunk() {
    std::uint64_t size =
        std::min<std::uint64_t>(request_.size - sent_, session_.options().upload_chunk);
    Call call("PATCH", location_);
    call.fields.set("Content-Type", "application/octet-stream");
    call.fields.set("Content-Range",
                    std::to_string(sent_) + "-" + std::to_string(sent_ + size - 1));
    std::optional<FilePart> part;
    if (request_.file.empty()) {
        call.content = request_.content.substr(sent_, size);
    } else {
        part.emplace(file_, pool_, sent_, size, request_);
        call.stream = &*part;
    }
    uncertain_ = true;
    auto response = co_await session_.send(std::move(call));
    if (!response) co_return response.error();
    uncertain_ = false;
    follow((*response)->head());
    sent_ += size;
    co_return Status();
}

Awaitable<Status> Upload::ask() {
    Call call("GET", location_);
    auto response = co_await session_.send(std::move(call));
    if (!response) {
        // It has forgotten the upload: from the beginning.
        if (response.error().code() == ErrorCode::not_found) location_.clear();
        if (location_.empty()) uncertain_ = false;
        co_return location_.empty() ? Status() : Status(response.error());
    }
    auto bytes = uploaded_bytes((*response)->head().fields.get("Range").value_or(""));
    if (!bytes || *bytes > request_.size) {
        location_.clear();
    } else {
        // "0-0" stands for nothing and for one byte; the first byte is soon sent again.
        sent_ = *bytes <= 1 ? 0 : *bytes;
        follow((*response)->head());
        if (*bytes == 1) location_.clear();
    }
    uncertain_ = false;
    co_return Status();
}

Awaitable<Status> Upload::end() {
    char separator = location_.find('?') == std::string::npos ? '?' : '&';
    Call call("PUT", location_ + separator + "digest=sha256:" + request_.hex);
    call.fields.set("Content-Type", "application/octet-stream");
    auto response = co_await session_.send(std::move(call));
    if (!response) {
        location_.clear();
        co_return response.error();
    }
    whole_ = true;
    co_return Status();
}

Awaitable<Status> Upload::step() {
    if (location_.empty()) co_return co_await begin();
    if (uncertain_) co_return co_await ask();
    if (sent_ < request_.size) co_return co_await send_chunk();
    co_return co_await end();
}

Awaitable<Status> Upload::run() {
    if (!request_.file.empty()) {
        UniqueFd file(::open(request_.file.c_str(), O_RDONLY | O_CLOEXEC));
        if (!file) co_return Error::from_errno(errno, "open " + request_.file.string());
        file_ = std::make_shared<const UniqueFd>(std::move(file));
    }
    std::uint64_t furthest = 0;
    for (int fruitless = 0; !whole_;) {
        auto done = co_await step();
        if (request_.cancelled && *request_.cancelled) {
            co_return Error(ErrorCode::cancelled, "another layer failed");
        }
        if (done) continue;
        bool forward = sent_ > furthest;
        furthest = std::max(furthest, sent_);
        fruitless = forward ? 0 : fruitless + 1;
        if (!may_pass(done.error()) || fruitless >= session_.options().attempts) {
            co_return done.error().within("blob sha256:" + request_.hex);
        }
        co_await session_.rest(session_.delay(fruitless + 2));
    }
    co_return Status();
}

}  // namespace

std::optional<std::uint64_t> uploaded_bytes(std::string_view range) {
    constexpr std::string_view kUnit = "bytes=";
    if (range.starts_with(kUnit)) range.remove_prefix(kUnit.size());
    if (!range.starts_with("0-")) return std::nullopt;
    range.remove_prefix(2);
    std::uint64_t last = 0;
    auto [end, failure] = std::from_chars(range.data(), range.data() + range.size(), last);
    if (failure != std::errc() || end != range.data() + range.size()) return std::nullopt;
    return last + 1;
}

Awaitable<Result<bool>> has_blob(Session& session, std::string hex) {
    Call call("HEAD", session.path("blobs/sha256:" + hex));
    auto response = co_await session.send(std::move(call));
    if (response) co_return true;
    if (response.error().code() == ErrorCode::not_found) co_return false;
    co_return response.error();
}

Awaitable<Result<bool>> mount_blob(Session& session, std::string hex, std::string from) {
    Call call("POST", session.path("blobs/uploads/?mount=sha256:" + hex +
                                   "&from=" + http::percent_encode(from, "/")));
    auto response = co_await session.send(std::move(call));
    if (!response) {
        // A registry that cannot, or a repository that this login may not read: then it is sent.
        co_return false;
    }
    if ((*response)->head().status == 201) co_return true;
    // It began an upload instead, which nobody will use.
    if (auto location = (*response)->head().fields.get("Location")) {
        Call cancel("DELETE", std::string(*location));
        response->reset();
        auto ignored = co_await session.send(std::move(cancel));
    }
    co_return false;
}

Awaitable<Status> upload_blob(Session& session, asio::thread_pool& pool, UploadRequest request) {
    Upload upload(session, pool, std::move(request));
    co_return co_await upload.run();
}

}  // namespace opensandbox::registry
