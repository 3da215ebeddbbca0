#include "json/document.hpp"
#include "sdk/wire.hpp"
#include "sdk/wire_reader.hpp"

namespace opensandbox::sdk::wire {

namespace {

std::uint64_t count_of(ObjectReader& in, std::string_view name) {
    const std::int64_t count = in.integer(name);
    if (count < 0) in.fail(name, "must not be negative");
    return count < 0 ? 0 : static_cast<std::uint64_t>(count);
}

Result<LayerProgress> progress_of(const json::object& from) {
    ObjectReader in(from);
    LayerProgress progress;
    progress.layer = in.string("layer");
    progress.status = in.string("status");
    progress.done = count_of(in, "done");
    progress.total = count_of(in, "total");
    if (in.failed()) return in.error();
    return progress;
}

Result<PushedImage> pushed_of(const json::object& from) {
    ObjectReader in(from);
    PushedImage pushed;
    pushed.reference = in.string("reference");
    pushed.digest = in.string("digest");
    pushed.size = count_of(in, "size");
    if (in.failed()) return in.error();
    return pushed;
}

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
        auto info = decode_image(json::serialize(*image));
        if (!info) return info.error();
        line.image = std::move(*info);
        return line;
    }
    if (const json::object* pushed = in.optional_object("pushed")) {
        auto info = pushed_of(*pushed);
        if (!info) return info.error();
        line.pushed = std::move(*info);
        return line;
    }
    if (const json::object* error = in.optional_object("error")) {
        line.error = error_of(*error);
        return line;
    }
    auto progress = progress_of(*document);
    if (!progress) return progress.error();
    line.progress = std::move(*progress);
    return line;
}

Result<ImageDetails> decode_image_details(std::string_view body) {
    auto document = parse_object(body);
    if (!document) return document.error();
    auto info = decode_image(body);
    if (!info) return info.error();
    ObjectReader in(*document);
    ImageDetails details;
    details.info = std::move(*info);
    details.os = in.string("os");
    details.architecture = in.string("architecture");
    details.source = in.optional_string("source").value_or("");
    const json::object& config = in.object("config");
    const json::array& layers = in.array("layers");
    if (in.failed()) return in.error();
    ObjectReader run(config);
    details.env = run.string_map("env");
    details.user = run.string("user");
    details.working_directory = run.string("workingDirectory");
    details.entrypoint = run.strings("entrypoint");
    details.cmd = run.strings("cmd");
    details.labels = run.string_map("labels");
    details.exposed_ports = run.strings("exposedPorts");
    if (run.failed()) return run.error();
    for (const json::value& item : layers) {
        if (!item.is_object()) continue;
        ObjectReader reader(item.get_object());
        ImageLayer layer;
        layer.diff_id = reader.string("diffId");
        layer.size = count_of(reader, "size");
        if (reader.failed()) return reader.error();
        details.layers.push_back(std::move(layer));
    }
    return details;
}

Result<PrunedImages> decode_pruned(std::string_view body) {
    auto document = parse_object(body);
    if (!document) return document.error();
    ObjectReader in(*document);
    PrunedImages pruned;
    pruned.removed = in.strings("removed");
    pruned.freed = count_of(in, "freed");
    if (in.failed()) return in.error();
    return pruned;
}

}  // namespace opensandbox::sdk::wire
