#include "json/document.hpp"
#include "sdk/fields/image.hpp"
#include "sdk/wire.hpp"
#include "sdk/wire_reader.hpp"

namespace opensandbox::sdk::wire {

namespace {

/// The stream began well, so that the error has no status of its own.
Error error_of(const json::object& from) {
    ObjectReader in(from);
    std::string code = in.string("code");
    std::string message = in.string("message");
    if (in.failed()) return in.error();
    ErrorCode kind = ErrorCode::bad_gateway;
    if (code == "IMAGE::NOT_FOUND") kind = ErrorCode::not_found;
    if (code == "IMAGE::ACCESS_DENIED") kind = ErrorCode::permission_denied;
    if (code == "IMAGE::INVALID" || code == "IMAGE::UNSUPPORTED")
        kind = ErrorCode::invalid_argument;
    if (code == "IMAGE::TOO_LARGE") kind = ErrorCode::too_large;
    if (code == "IMAGE::CONFLICT") kind = ErrorCode::conflict;
    return Error(kind, 0, std::move(code), std::move(message), {});
}

}  // namespace

std::string encode_transfer(const std::string& reference, const std::string& destination,
                            const std::optional<RegistryAuth>& login) {
    json::object body{{"reference", reference}};
    if (!destination.empty()) body["destination"] = destination;
    if (login) {
        body["auth"] = json::object{{"username", login->username}, {"password", login->password}};
    }
    return json::serialize(body);
}

Result<TransferLine> decode_transfer_line(std::string_view text) {
    auto document = parse_object(text);
    if (!document) return document.error();
    ObjectReader in(*document);
    TransferLine line;
    if (const json::object* image = in.optional_object("image")) {
        auto info = read_document<ImageInfo>(*image, fields::kImageMembers);
        if (!info) return info.error();
        line.image = std::move(*info);
        return line;
    }
    if (const json::object* pushed = in.optional_object("pushed")) {
        auto info = read_document<PushedImage>(*pushed, fields::kPushedImageMembers);
        if (!info) return info.error();
        line.pushed = std::move(*info);
        return line;
    }
    if (const json::object* error = in.optional_object("error")) {
        line.error = error_of(*error);
        return line;
    }
    auto progress = read_document<LayerProgress>(*document, fields::kLayerProgressMembers);
    if (!progress) return progress.error();
    line.progress = std::move(*progress);
    return line;
}

Result<ImageInfo> decode_image(std::string_view body) {
    return decode_document<ImageInfo>(body, fields::kImageMembers);
}

Result<std::vector<ImageInfo>> decode_images(std::string_view body) {
    return decode_documents<ImageInfo>(body, "items", fields::kImageMembers);
}

Result<ImageDetails> decode_image_details(std::string_view body) {
    return decode_document<ImageDetails>(body, fields::kImageDetailsMembers);
}

Result<PrunedImages> decode_pruned(std::string_view body) {
    return decode_document<PrunedImages>(body, [](auto& walker, auto& pruned) {
        walker.put("removed", pruned.removed);
        walker.put("freed", pruned.freed);
    });
}

}  // namespace opensandbox::sdk::wire
