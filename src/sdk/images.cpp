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
