#include "json/document.hpp"
#include "sdk/wire.hpp"
#include "sdk/wire_reader.hpp"

namespace opensandbox::sdk::wire {

namespace {

Result<SnapshotInfo> snapshot_of(const json::object& from) {
    ObjectReader in(from);
    SnapshotInfo info;
    info.id = in.string("id");
    info.sandbox_id = in.string("sandboxId");
    info.name = in.optional_string("name");
    info.created_at = in.time("createdAt");
    const json::object& status_object = in.object("status");
    if (in.failed()) return in.error();
    ObjectReader status(status_object);
    info.state = status.string("state");
    info.reason = status.optional_string("reason");
    info.message = status.optional_string("message");
    info.last_transition_at = status.optional_time("lastTransitionAt");
    if (status.failed()) return status.error().within("status");
    return info;
}

}  // namespace

std::string encode_snapshot(const std::optional<std::string>& name) {
    json::object body;
    if (name) body["name"] = *name;
    return json::serialize(body);
}

Result<SnapshotInfo> decode_snapshot(std::string_view body) {
    auto document = parse_object(body);
    if (!document) return document.error();
    return snapshot_of(*document);
}

Result<SnapshotPage> decode_snapshot_page(std::string_view body) {
    auto document = parse_object(body);
    if (!document) return document.error();
    ObjectReader in(*document);
    SnapshotPage page;
    const json::array& items = in.array("items");
    const json::object& pagination = in.object("pagination");
    if (in.failed()) return in.error();
    for (const json::value& item : items) {
        if (!item.is_object()) {
            return Error(ErrorCode::protocol, "the answer breaks its format: items: not objects");
        }
        auto info = snapshot_of(item.get_object());
        if (!info) return info.error();
        page.items.push_back(std::move(*info));
    }
    auto read = pagination_of(pagination);
    if (!read) return read.error();
    page.pagination = *read;
    return page;
}

std::string encode_named_image(const std::string& source, const std::string& reference,
                               const ImageConfigChange& change) {
    json::object config;
    if (change.environment) config["env"] = json::string_object(*change.environment);
    if (change.user) config["user"] = *change.user;
    if (change.working_directory) config["workingDir"] = *change.working_directory;
    if (change.entrypoint) config["entrypoint"] = json::string_array(*change.entrypoint);
    if (change.cmd) config["cmd"] = json::string_array(*change.cmd);
    if (change.labels) config["labels"] = json::string_object(*change.labels);
    if (change.exposed_ports) config["exposedPorts"] = json::string_array(*change.exposed_ports);
    json::object body;
    if (!source.empty()) body["source"] = source;
    body["reference"] = reference;
    if (!config.empty()) body["config"] = std::move(config);
    return json::serialize(body);
}

}  // namespace opensandbox::sdk::wire
