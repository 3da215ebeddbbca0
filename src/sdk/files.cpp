#include "opensandbox/files.hpp"

#include "base/identifier.hpp"
#include "sdk/transport.hpp"
#include "sdk/upload_body.hpp"
#include "sdk/wire.hpp"

namespace opensandbox::sdk {

namespace {

constexpr std::size_t kFilePiece = 256 * 1024;

std::string paths_query(const std::vector<std::string>& paths) {
    std::vector<std::pair<std::string, std::string>> items;
    items.reserve(paths.size());
    for (const auto& path : paths)
        items.emplace_back("path", path);
    return encode_query(items);
}

std::optional<Error> refuse_no_paths(const std::vector<std::string>& paths) {
    for (const auto& path : paths) {
        if (path.empty()) return Error(ErrorCode::invalid_argument, "a path is empty");
    }
    if (paths.empty()) return Error(ErrorCode::invalid_argument, "no path was given");
    return std::nullopt;
}

Awaitable<Status> without_answer(Transport& transport, std::shared_ptr<const Route> agent,
                                 Call call) {
    auto reply = co_await transport.exchange(std::move(agent), std::move(call));
    if (!reply) co_return reply.error();
    co_return Status();
}

/// The first part of an upload; both parts carry a filename, which older agents insist on.
std::string parts_before_content(const std::string& boundary, const std::string& metadata) {
    return "--" + boundary +
           "\r\nContent-Disposition: form-data; name=\"metadata\"; filename=\"metadata\"\r\n"
           "Content-Type: application/json\r\n\r\n" +
           metadata + "\r\n--" + boundary +
           "\r\nContent-Disposition: form-data; name=\"file\"; filename=\"file\"\r\n"
           "Content-Type: application/octet-stream\r\n\r\n";
}

/// Collects a download in memory up to a limit.
class MemoryWriter : public ByteWriter {
  public:
    explicit MemoryWriter(std::size_t limit) : limit_(limit) {}
    Awaitable<Status> write(std::string_view bytes) override {
        if (bytes.size() > limit_ - content.size()) {
            co_return Error(ErrorCode::too_large,
                            "the file has more than " + std::to_string(limit_) + " bytes");
        }
        content.append(bytes);
        co_return Status();
    }
    std::string content;

  private:
    std::size_t limit_;
};

/// The body of an answer as it comes.
class AnswerReader : public ByteReader {
  public:
    explicit AnswerReader(std::unique_ptr<http::ClientResponse> response)
        : response_(std::move(response)) {}
    Awaitable<Result<std::size_t>> read_some(std::span<char> into) override {
        auto count = co_await response_->body().read_some(into);
        if (!count) co_return to_public(count.error());
        co_return *count;
    }
    [[nodiscard]] std::optional<std::uint64_t> size() const override { return std::nullopt; }

  private:
    std::unique_ptr<http::ClientResponse> response_;
};

std::string unpack_target(const std::string& directory, const Permissions& permissions) {
    std::vector<std::pair<std::string, std::string>> query{{"path", directory}};
    if (permissions.owner) query.emplace_back("owner", *permissions.owner);
    if (permissions.group) query.emplace_back("group", *permissions.group);
    if (permissions.mode) {
        query.emplace_back("mode", std::to_string(wire::mode_to_wire(*permissions.mode)));
    }
    return "/files/archive?" + encode_query(query);
}

}  // namespace

std::string_view to_string(FileType type) {
    switch (type) {
        case FileType::file: return "file";
        case FileType::directory: return "directory";
        case FileType::symlink: return "symlink";
        case FileType::other: return "other";
    }
    return "other";
}

Files::Files(std::shared_ptr<Transport> transport, std::shared_ptr<const Route> agent)
    : transport_(std::move(transport)), agent_(std::move(agent)) {}

Awaitable<Result<std::string>> Files::read(std::string path, std::size_t limit) const {
    MemoryWriter memory(limit);
    auto size = co_await download(std::move(path), memory);
    if (!size) co_return size.error();
    co_return std::move(memory.content);
}

Awaitable<Status> Files::write(std::string path, std::string content,
                               Permissions permissions) const {
    auto source = read_bytes(content);
    co_return co_await upload(std::move(path), *source, std::move(permissions));
}

Awaitable<Status> Files::upload(std::string path, ByteReader& source, Permissions permissions,
                                Progress progress) const {
    const std::string boundary = "opensandbox_" + new_hex_id();
    const std::string metadata = wire::encode_upload_metadata(path, permissions);
    UploadBody body(parts_before_content(boundary, metadata), source,
                    "\r\n--" + boundary + "--\r\n", std::move(progress));
    Call call("POST", "/files/upload");
    call.fields.set("Content-Type", "multipart/form-data; boundary=" + boundary);
    call.stream = &body;
    auto reply =
        co_await transport_->exchange_once(agent_, std::move(call), std::chrono::milliseconds(0));
    if (body.failure()) co_return *body.failure();
    if (!reply) co_return reply.error();
    co_return Status();
}

Awaitable<Result<std::uint64_t>> Files::download(std::string path, ByteWriter& sink,
                                                 Progress progress,
                                                 std::optional<ByteRange> range) const {
    Call call("GET", "/files/download?path=" + http::percent_encode(path));
    if (range) {
        std::string text = "bytes=" + std::to_string(range->begin) + "-";
        if (range->end) text += std::to_string(*range->end);
        call.fields.set("Range", std::move(text));
    }
    auto response = co_await transport_->open(agent_, std::move(call));
    if (!response) co_return response.error();
    http::BodyReader& body = (*response)->body();
    const std::uint64_t total = body.content_length().value_or(0);
    std::string piece(kFilePiece, '\0');
    std::uint64_t done = 0;
    for (;;) {
        std::span<char> into(piece);
        auto count = co_await body.read_some(into);
        if (!count) co_return to_public(count.error().within(path));
        if (*count == 0) break;
        done += *count;
        Status written = co_await sink.write(std::string_view(piece.data(), *count));
        if (!written) co_return written.error();
        if (progress) progress(done, total);
    }
    co_return done;
}

Awaitable<Result<std::vector<FileInfo>>> Files::info(std::vector<std::string> paths) const {
    if (auto refused = refuse_no_paths(paths)) co_return *refused;
    Call call("GET", "/files/info?" + paths_query(paths));
    auto reply = co_await transport_->exchange(agent_, std::move(call));
    if (!reply) co_return reply.error();
    co_return wire::decode_file_map(reply->body, paths);
}

Awaitable<Result<std::vector<FileInfo>>> Files::search(std::string path,
                                                       std::string pattern) const {
    Call call("GET", "/files/search?path=" + http::percent_encode(path) +
                         "&pattern=" + http::percent_encode(pattern));
    auto reply = co_await transport_->exchange(agent_, std::move(call));
    if (!reply) co_return reply.error();
    co_return wire::decode_file_list(reply->body);
}

Awaitable<Result<std::vector<FileInfo>>> Files::list(std::string path, unsigned depth) const {
    Call call("GET", "/directories/list?path=" + http::percent_encode(path) +
                         "&depth=" + std::to_string(depth));
    auto reply = co_await transport_->exchange(agent_, std::move(call));
    if (!reply) co_return reply.error();
    co_return wire::decode_file_list(reply->body);
}

Awaitable<Status> Files::make_directories(std::vector<std::string> paths,
                                          Permissions permissions) const {
    if (auto refused = refuse_no_paths(paths)) co_return *refused;
    Call call("POST", "/directories", wire::encode_permissions(paths, permissions));
    co_return co_await without_answer(*transport_, agent_, std::move(call));
}

Awaitable<Status> Files::move(std::string from, std::string to) const {
    Call call("POST", "/files/mv", wire::encode_move(from, to));
    co_return co_await without_answer(*transport_, agent_, std::move(call));
}

Awaitable<Status> Files::remove(std::vector<std::string> paths) const {
    if (auto refused = refuse_no_paths(paths)) co_return *refused;
    Call call("DELETE", "/files?" + paths_query(paths));
    co_return co_await without_answer(*transport_, agent_, std::move(call));
}

Awaitable<Status> Files::remove_directories(std::vector<std::string> paths) const {
    if (auto refused = refuse_no_paths(paths)) co_return *refused;
    Call call("DELETE", "/directories?" + paths_query(paths));
    co_return co_await without_answer(*transport_, agent_, std::move(call));
}

Awaitable<Status> Files::unpack(std::string directory, ByteReader& archive, Permissions permissions,
                                Progress progress) const {
    UploadBody body("", archive, "", std::move(progress));
    Call call("POST", unpack_target(directory, permissions));
    call.fields.set("Content-Type", "application/x-tar");
    call.stream = &body;
    auto reply =
        co_await transport_->exchange_once(agent_, std::move(call), std::chrono::milliseconds(0));
    if (body.failure()) co_return *body.failure();
    if (!reply) co_return reply.error();
    co_return Status();
}

Awaitable<Result<std::unique_ptr<ByteReader>>> Files::pack(std::string path,
                                                           std::string name) const {
    std::vector<std::pair<std::string, std::string>> query{{"path", std::move(path)}};
    if (!name.empty()) query.emplace_back("name", std::move(name));
    Call call("GET", "/files/archive?" + encode_query(query));
    auto response = co_await transport_->open(agent_, std::move(call));
    if (!response) co_return response.error();
    std::unique_ptr<ByteReader> reader = std::make_unique<AnswerReader>(std::move(*response));
    co_return std::move(reader);
}

Awaitable<Status> Files::set_permissions(std::string path, Permissions permissions) const {
    std::vector<std::string> paths{path};
    if (auto refused = refuse_no_paths(paths)) co_return *refused;
    Call call("POST", "/files/permissions", wire::encode_permissions(paths, permissions));
    co_return co_await without_answer(*transport_, agent_, std::move(call));
}

Awaitable<Result<std::uint64_t>> Files::replace(std::string path, std::string old_text,
                                                std::string new_text) const {
    if (old_text.empty()) {
        co_return Error(ErrorCode::invalid_argument, "the text to replace is empty");
    }
    Call call("POST", "/files/replace?verbose=true",
              wire::encode_replace(path, old_text, new_text));
    auto reply = co_await transport_->exchange(agent_, std::move(call));
    if (!reply) co_return reply.error();
    co_return wire::decode_replaced_count(reply->body, path);
}

}  // namespace opensandbox::sdk
