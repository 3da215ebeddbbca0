#include "opensandbox/images.hpp"

#include "sdk/transport.hpp"
#include "sdk/upload_body.hpp"
#include "sdk/wire.hpp"

namespace opensandbox::sdk {

Awaitable<Result<std::vector<ImageInfo>>> Images::list() const {
    Transport& transport = *connection_.transport();
    Call call("GET", "/images");
    auto reply = co_await transport.exchange(transport.lifecycle(), std::move(call));
    if (!reply) co_return reply.error();
    co_return wire::decode_images(reply->body);
}

Awaitable<Result<ImageInfo>> Images::import_archive(std::string reference, ByteReader& archive,
                                                    Progress progress) const {
    Transport& transport = *connection_.transport();
    UploadBody body("", archive, "", std::move(progress));
    Call call("POST", "/images?reference=" + http::percent_encode(reference));
    call.fields.set("Content-Type", "application/octet-stream");
    call.stream = &body;
    // Unpacking follows the last byte and may take minutes.
    auto reply = co_await transport.exchange_once(transport.lifecycle(), std::move(call),
                                                  std::chrono::milliseconds(0));
    if (body.failure()) co_return *body.failure();
    if (!reply) co_return reply.error();
    co_return wire::decode_image(reply->body);
}

Awaitable<Result<ImageInfo>> Images::tag(std::string source, std::string reference,
                                         ImageConfigChange change) const {
    Transport& transport = *connection_.transport();
    Call call("POST", "/images/tag", wire::encode_named_image(source, reference, change));
    auto reply = co_await transport.exchange(transport.lifecycle(), std::move(call));
    if (!reply) co_return reply.error();
    co_return wire::decode_image(reply->body);
}

namespace {

constexpr std::size_t kLongestLine = std::size_t{1} << 20;

/// Reads a transfer's lines to the last one, which says how it ended.
Awaitable<Result<wire::TransferLine>> follow(Transport& transport, Call call,
                                             LayerListener listener) {
    auto response = co_await transport.open(transport.lifecycle(), std::move(call));
    if (!response) co_return response.error();
    http::BodyReader& body = (*response)->body();
    std::string text;
    std::string piece(std::size_t{16} << 10, '\0');
    while (true) {
        for (auto end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
            auto line = wire::decode_transfer_line(std::string_view(text).substr(0, end));
            if (!line) co_return line.error();
            text.erase(0, end + 1);
            if (!line->progress) co_return line;
            if (listener) listener(*line->progress);
        }
        if (text.size() > kLongestLine) {
            co_return Error(ErrorCode::protocol, "the server sent a line without an end");
        }
        auto count = co_await body.read_some(piece);
        if (!count) co_return to_public(count.error());
        if (*count == 0) {
            co_return Error(ErrorCode::bad_gateway, "the server broke the transfer off");
        }
        text.append(piece, 0, *count);
    }
}

}  // namespace

Awaitable<Result<ImageInfo>> Images::pull(std::string reference, std::optional<RegistryAuth> login,
                                          LayerListener listener) const {
    Transport& transport = *connection_.transport();
    Call call("POST", "/images/pull", wire::encode_transfer(reference, "", login));
    auto end = co_await follow(transport, std::move(call), std::move(listener));
    if (!end) co_return end.error();
    if (end->error) co_return *end->error;
    if (end->image) co_return *end->image;
    co_return Error(ErrorCode::protocol, "the server did not say which image it pulled");
}

Awaitable<Result<PushedImage>> Images::push(std::string reference, std::string destination,
                                            std::optional<RegistryAuth> login,
                                            LayerListener listener) const {
    Transport& transport = *connection_.transport();
    Call call("POST", "/images/push", wire::encode_transfer(reference, destination, login));
    auto end = co_await follow(transport, std::move(call), std::move(listener));
    if (!end) co_return end.error();
    if (end->error) co_return *end->error;
    if (end->pushed) co_return *end->pushed;
    co_return Error(ErrorCode::protocol, "the server did not say what it pushed");
}

Awaitable<Result<ImageDetails>> Images::inspect(std::string reference) const {
    Transport& transport = *connection_.transport();
    Call call("GET", "/images/inspect?reference=" + http::percent_encode(reference));
    auto reply = co_await transport.exchange(transport.lifecycle(), std::move(call));
    if (!reply) co_return reply.error();
    co_return wire::decode_image_details(reply->body);
}

Awaitable<Result<std::uint64_t>> Images::export_archive(std::string reference, ByteWriter& sink,
                                                        Progress progress) const {
    Transport& transport = *connection_.transport();
    Call call("GET", "/images/export?reference=" + http::percent_encode(reference));
    auto response = co_await transport.open(transport.lifecycle(), std::move(call));
    if (!response) co_return response.error();
    std::uint64_t done = 0;
    std::string piece(std::size_t{128} << 10, '\0');
    while (true) {
        auto count = co_await (*response)->body().read_some(piece);
        if (!count) co_return to_public(count.error());
        if (*count == 0) co_return done;
        auto written = co_await sink.write(std::string_view(piece).substr(0, *count));
        if (!written) co_return written.error();
        done += *count;
        if (progress) progress(done, 0);
    }
}

Awaitable<Result<PrunedImages>> Images::prune(bool all) const {
    Transport& transport = *connection_.transport();
    Call call("POST", "/images/prune", all ? R"({"all":true})" : "{}");
    // Much may have to be removed.
    auto reply = co_await transport.exchange_once(transport.lifecycle(), std::move(call),
                                                  std::chrono::milliseconds(0));
    if (!reply) co_return reply.error();
    co_return wire::decode_pruned(reply->body);
}

Awaitable<Status> Images::remove(std::string reference) const {
    if (reference.empty()) {
        co_return Error(ErrorCode::invalid_argument, "the image reference is empty");
    }
    Transport& transport = *connection_.transport();
    Call call("DELETE", "/images/" + http::percent_encode(reference));
    auto reply = co_await transport.exchange(transport.lifecycle(), std::move(call));
    if (!reply) co_return reply.error();
    co_return Status();
}

}  // namespace opensandbox::sdk
