#include "agent/api/file_routes.hpp"
#include "agent/files/replacement_file.hpp"
#include "agent/ground/reply.hpp"
#include "http/multipart.hpp"

#include <deque>
#include <memory>

namespace opensandbox::agent {
namespace {

constexpr std::size_t kMaxMetadata = std::size_t{64} * 1024;
constexpr std::size_t kMaxWaitingParts = 1000;
constexpr std::size_t kUploadPiece = std::size_t{256} * 1024;

/// Where a file goes and what it gets.
struct Destination {
    std::string path;
    Permission permission;
};

Error refused(std::string_view code, std::string message) {
    return {ErrorCode::invalid_argument, std::string(code), std::move(message)};
}

Result<Destination> parse_metadata(const FileCall& call, std::string_view text) {
    Result<json::value> document = json::parse(text);
    if (!document) return document.error().as(std::string(code::kInvalidFileMetadata));
    if (!document->is_object()) {
        return refused(code::kInvalidFileMetadata, "metadata: must be a JSON object");
    }
    json::object members = with_lower_names(document->get_object());
    Destination destination;
    auto requested = json::get_string(members, "path");
    if (!requested) return requested.error().as(std::string(code::kInvalidFileMetadata));
    Result<std::string> path = call.resolve(requested->value_or(""));
    if (!path) return path.error().as(std::string(code::kInvalidFileMetadata));
    Result<Permission> permission = parse_permission(members);
    if (!permission) return permission.error().as(std::string(code::kInvalidFileMetadata));
    destination.path = std::move(*path);
    destination.permission = std::move(*permission);
    return destination;
}

Awaitable<Result<std::string>> read_part(http::MultipartReader& parts, std::size_t limit) {
    std::string text;
    std::string piece(4096, '\0');
    while (true) {
        Result<std::size_t> got = co_await parts.read_some(piece);
        if (!got) co_return got.error();
        if (*got == 0) co_return text;
        text.append(piece, 0, *got);
        if (text.size() > limit) {
            co_return refused(code::kInvalidFileMetadata, "metadata: is longer than 64 KiB");
        }
    }
}

/// Fills `piece` as far as the part has bytes, so that the disk sees few and large writes.
Awaitable<Result<std::size_t>> fill(http::MultipartReader& parts, std::string& piece) {
    std::size_t have = 0;
    while (have < piece.size()) {
        std::span<char> rest(piece.data() + have, piece.size() - have);
        Result<std::size_t> got = co_await parts.read_some(rest);
        if (!got) co_return got.error();
        if (*got == 0) break;
        have += *got;
    }
    co_return have;
}

using OpenFile = std::shared_ptr<std::optional<ReplacementFile>>;

Awaitable<Status> fill_file(FileCall call, http::MultipartReader& parts, Destination destination,
                            OpenFile file) {
    std::function<Status()> open = [file, path = std::move(destination.path)]() -> Status {
        Result<ReplacementFile> opened = ReplacementFile::open(path, true);
        if (!opened) return opened.error();
        file->emplace(std::move(*opened));
        return {};
    };
    FilePool& pool = call.services.files;
    Status done = co_await pool.run<void>(call.identity, std::move(open));
    auto piece = std::make_shared<std::string>(kUploadPiece, '\0');
    while (done) {
        Result<std::size_t> size = co_await fill(parts, *piece);
        if (!size) co_return size.error();
        if (*size == 0) break;
        std::function<Status()> write = [file, piece, count = *size] {
            return (*file)->write(std::string_view(*piece).substr(0, count));
        };
        done = co_await pool.run<void>(call.identity, std::move(write));
    }
    if (!done) co_return done;
    std::function<Status()> commit = [file, permission = std::move(destination.permission)] {
        return (*file)->commit(permission);
    };
    co_return co_await pool.run<void>(call.identity, std::move(commit));
}

Awaitable<Status> store_part(FileCall call, http::MultipartReader& parts, Destination destination) {
    auto file = std::make_shared<std::optional<ReplacementFile>>();
    Status stored = co_await fill_file(call, parts, std::move(destination), file);
    if (stored || !*file) co_return stored;
    // What is left of it goes where, and as whom, it was made.
    std::function<Status()> drop = [file]() -> Status {
        file->reset();
        return {};
    };
    Status dropped = co_await call.services.files.run<void>(call.identity, std::move(drop));
    co_return dropped ? stored : dropped;
}

/// Counts parts and pairs each file with the metadata before it.
class Pairing {
  public:
    Status add(Destination destination) {
        ++metadata_;
        if (waiting_.size() >= kMaxWaitingParts) {
            return refused(code::kInvalidFile, "more than 1000 metadata parts without their file");
        }
        waiting_.push_back(std::move(destination));
        return {};
    }
    Result<Destination> take() {
        ++files_;
        if (waiting_.empty()) {
            return refused(metadata_ == 0 ? code::kInvalidFileMetadata : code::kInvalidFile,
                           "a file part must come after its metadata part");
        }
        Destination destination = std::move(waiting_.front());
        waiting_.pop_front();
        return destination;
    }
    [[nodiscard]] Status check_end() const {
        if (metadata_ == 0 && files_ == 0) {
            return refused(code::kInvalidFile, "multipart form is empty");
        }
        if (files_ == 0) return refused(code::kInvalidFileContent, "the form has no file part");
        if (!waiting_.empty()) {
            return refused(code::kInvalidFile, "metadata and file parts differ in number");
        }
        return {};
    }

  private:
    std::deque<Destination> waiting_;
    std::size_t metadata_ = 0;
    std::size_t files_ = 0;
};

Awaitable<Status> store_all(FileCall call, http::MultipartReader& parts) {
    Pairing pairing;
    while (true) {
        Result<std::optional<http::PartHead>> head = co_await parts.next_part();
        if (!head) co_return head.error().as(std::string(code::kInvalidFile));
        if (!*head) co_return pairing.check_end();
        if ((*head)->name == "metadata") {
            Result<std::string> text = co_await read_part(parts, kMaxMetadata);
            if (!text) co_return text.error();
            Result<Destination> destination = parse_metadata(call, *text);
            if (!destination) co_return destination.error();
            Status added = pairing.add(std::move(*destination));
            if (!added) co_return added;
        } else if ((*head)->name == "file") {
            Result<Destination> destination = pairing.take();
            if (!destination) co_return destination.error();
            Status stored = co_await store_part(call, parts, std::move(*destination));
            if (!stored) co_return stored;
        }
    }
}

/// What the client sees: everything that is not its own mistake is a failed operation.
Error as_answer(const Error& error) {
    if (error.code() == ErrorCode::not_found) return {ErrorCode::io, error.message()};
    if (error.code() == ErrorCode::protocol && error.wire().empty()) {
        return error.as(std::string(code::kInvalidFile));
    }
    return error;
}

}  // namespace

Awaitable<void> upload_files(FileCall call) {
    auto type = call.exchange.request().fields.get("Content-Type");
    auto parts = http::MultipartReader::open(type.value_or(""), call.exchange.body());
    if (!parts) {
        co_await reply_error(call.exchange, 400, code::kInvalidFile, "multipart form is empty");
        co_return;
    }
    Status stored = co_await store_all(call, *parts);
    if (stored) {
        co_await reply_empty(call.exchange);
    } else {
        co_await reply_error(call.exchange, as_answer(stored.error()));
    }
}

}  // namespace opensandbox::agent
