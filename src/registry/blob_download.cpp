#include "base/digest.hpp"
#include "base/unique_fd.hpp"
#include "image/input_stream.hpp"
#include "net/task.hpp"
#include "registry/blobs.hpp"

#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <unistd.h>

namespace opensandbox::registry {
namespace {

/// Written and hashed in one go.
constexpr std::size_t kPiece = std::size_t{1} << 20;

/// The file with what has arrived, and the digest of that.
struct Partial {
    UniqueFd file;
    Sha256 hash;
    std::uint64_t size = 0;
    std::string buffer;  ///< received, not written yet

    Status restart() {
        hash = Sha256();
        size = 0;
        buffer.clear();
        if (::ftruncate(file.get(), 0) == 0 && ::lseek(file.get(), 0, SEEK_SET) == 0) return {};
        return Error::from_errno(errno, "empty a file of the download");
    }
    Status flush() {
        if (auto ok = image::write_all(file.get(), buffer); !ok) return ok;
        hash.update(buffer);
        size += buffer.size();
        buffer.clear();
        return {};
    }
};

class Download {
  public:
    Download(Session& session, asio::thread_pool& pool, BlobRequest request)
        : session_(session),
          pool_(pool),
          request_(std::move(request)),
          partial_(std::make_shared<Partial>()) {}

    Awaitable<Status> run();

  private:
    Awaitable<Status> flush();
    Awaitable<Status> receive();
    Awaitable<Status> take_body(http::ClientResponse& response);
    [[nodiscard]] Error wrong(const std::string& what) const {
        return {ErrorCode::invalid_argument, "blob sha256:" + request_.hex + ": " + what};
    }

    Session& session_;
    asio::thread_pool& pool_;
    BlobRequest request_;
    std::shared_ptr<Partial> partial_;  ///< also of the work on the pool
};

Awaitable<Status> Download::flush() {
    std::function<Status()> work = [partial = partial_] { return partial->flush(); };
    auto written = co_await net::run_blocking<Status>(pool_, std::move(work));
    if (written && request_.on_progress) request_.on_progress(partial_->size);
    co_return written;
}

Awaitable<Status> Download::take_body(http::ClientResponse& response) {
    std::string piece(std::size_t{128} << 10, '\0');
    while (true) {
        auto count = co_await read_piece(session_, response, piece);
        if (request_.cancelled && *request_.cancelled) {
            co_return Error(ErrorCode::cancelled, "another layer failed");
        }
        bool ended = !count || *count == 0;
        if (count) partial_->buffer.append(piece, 0, *count);
        if (partial_->size + partial_->buffer.size() > request_.size) {
            co_return wrong("more bytes came than the " + std::to_string(request_.size) +
                            " that the manifest states");
        }
        if (ended || partial_->buffer.size() >= kPiece) {
            auto written = co_await flush();
            if (!written) co_return written;
        }
        if (!count) co_return count.error();
        if (ended) co_return Status();
    }
}

/// One request for what is missing.
Awaitable<Status> Download::receive() {
    Call call("GET", session_.path("blobs/sha256:" + request_.hex));
    if (partial_->size > 0) {
        call.fields.set("Range", "bytes=" + std::to_string(partial_->size) + "-");
    }
    auto response = co_await session_.send(std::move(call));
    if (!response) co_return response.error();
    const http::ResponseHead& head = (*response)->head();
    bool continues = head.status == 206 &&
                     range_start(head.fields.get("Content-Range").value_or("")) == partial_->size;
    if (partial_->size > 0 && !continues) {
        // It does not know ranges, or means another one.
        auto emptied = partial_->restart();
        if (!emptied) co_return emptied;
        if (head.status != 200) {
            co_return Error(ErrorCode::bad_gateway, "the registry sent another part than asked");
        }
    }
    co_return co_await take_body(**response);
}

Awaitable<Status> Download::run() {
    partial_->file =
        UniqueFd(::open(request_.file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!partial_->file) co_return Error::from_errno(errno, "make " + request_.file.string());
    for (int fruitless = 0; partial_->size < request_.size;) {
        std::uint64_t before = partial_->size;
        auto received = co_await receive();
        if (!received && !may_pass(received.error())) co_return received.error();
        if (partial_->size == request_.size) break;
        fruitless = partial_->size > before ? 0 : fruitless + 1;
        if (fruitless >= session_.options().attempts) {
            if (!received) co_return received.error();
            co_return wrong("only " + std::to_string(partial_->size) + " bytes came, must be " +
                            std::to_string(request_.size));
        }
        co_await session_.rest(session_.delay(fruitless + 2));
    }
    if (std::string hex = partial_->hash.finish(); hex != request_.hex) {
        co_return wrong("the registry sent bytes of digest sha256:" + hex);
    }
    co_return Status();
}

}  // namespace

std::optional<std::uint64_t> range_start(std::string_view content_range) {
    constexpr std::string_view kUnit = "bytes ";
    if (!content_range.starts_with(kUnit)) return std::nullopt;
    content_range.remove_prefix(kUnit.size());
    std::uint64_t start = 0;
    const char* last = content_range.data() + content_range.size();
    auto [end, failure] = std::from_chars(content_range.data(), last, start);
    if (failure != std::errc() || end == last || *end != '-') return std::nullopt;
    return start;
}

Awaitable<Status> download_blob(Session& session, asio::thread_pool& pool, BlobRequest request) {
    Download download(session, pool, std::move(request));
    co_return co_await download.run();
}

}  // namespace opensandbox::registry
