#include "sdk/document/describe.hpp"

#include "base/clock.hpp"
#include "sdk/fields/page.hpp"
#include "sdk/fields/sandbox.hpp"
#include "sdk/fields/snapshot.hpp"
#include "sdk/fields/template.hpp"
#include "sdk/wire.hpp"

namespace opensandbox::sdk {

json::value or_null(const std::optional<std::string>& text) {
    return text ? json::value(*text) : json::value();
}

namespace {

json::value or_null(const std::optional<TimePoint>& time) {
    return time ? json::value(to_rfc3339(*time)) : json::value();
}

json::array list_of(const std::vector<std::string>& items) {
    json::array array;
    for (const auto& item : items)
        array.emplace_back(item);
    return array;
}

}  // namespace

json::object describe(const SandboxInfo& info) {
    return json::write_fields(info, fields::sandbox_members);
}

json::object rows_of(const SandboxInfo& info) {
    return json::row_fields(info, fields::sandbox_members);
}

json::object describe(const Pagination& pagination) {
    return json::write_fields(pagination, fields::pagination_members);
}

json::object describe(const SnapshotInfo& info) {
    return json::write_fields(info, fields::snapshot_members);
}

json::object describe(const SnapshotPage& page) {
    return json::write_fields(page, fields::page_members(fields::snapshot_members));
}

json::object describe(const SandboxPage& page) {
    return json::write_fields(page, fields::page_members(fields::sandbox_members));
}

json::object describe(const Endpoint& endpoint) {
    json::object headers;
    for (const auto& [name, value] : endpoint.headers)
        headers[name] = value;
    json::object out;
    out["endpoint"] = endpoint.endpoint;
    out["headers"] = std::move(headers);
    out["origin"] = or_null(endpoint.origin);
    return out;
}

json::object describe(const Metrics& metrics) {
    json::object out;
    out["cpu_count"] = metrics.cpu_count;
    out["cpu_used_percentage"] = metrics.cpu_used_percentage;
    out["memory_total_in_mib"] = metrics.memory_total_in_mib;
    out["memory_used_in_mib"] = metrics.memory_used_in_mib;
    out["timestamp"] = metrics.timestamp;
    return out;
}

json::object describe(const CommandStatus& status) {
    json::object out;
    out["id"] = status.id;
    out["content"] = or_null(status.content);
    out["running"] = status.running;
    out["exit_code"] = status.exit_code ? json::value(*status.exit_code) : json::value();
    out["error"] = or_null(status.error);
    out["started_at"] = or_null(status.started_at);
    out["finished_at"] = or_null(status.finished_at);
    return out;
}

json::object describe(const CommandPage& page) {
    json::array items;
    for (const auto& command : page.items) {
        json::object item;
        item["id"] = command.id;
        item["running"] = command.running;
        item["background"] = command.background;
        item["exit_code"] = command.exit_code ? json::value(*command.exit_code) : json::value();
        item["error"] = or_null(command.error);
        item["started_at"] = or_null(command.started_at);
        item["finished_at"] = or_null(command.finished_at);
        items.emplace_back(std::move(item));
    }
    json::object out;
    out["items"] = std::move(items);
    out["next_cursor"] = or_null(page.next_cursor);
    return out;
}

json::object describe(const FileInfo& info) {
    json::object out;
    out["path"] = info.path;
    out["entry_type"] = to_string(info.type);
    out["mode"] = wire::mode_to_wire(info.mode);
    out["owner"] = info.owner;
    out["group"] = info.group;
    out["size"] = info.size;
    out["modified_at"] = to_rfc3339(info.modified_at);
    out["created_at"] = to_rfc3339(info.created_at);
    return out;
}

json::array describe(const std::vector<FileInfo>& files) {
    json::array out;
    for (const auto& file : files)
        out.emplace_back(describe(file));
    return out;
}

json::object describe(const ImageInfo& info) {
    json::object out;
    out["reference"] = info.reference;
    out["digest"] = info.digest;
    out["size"] = info.size;
    out["created_at"] = to_rfc3339(info.created_at);
    out["built_in"] = info.built_in;
    return out;
}

json::object describe(const TemplateInfo& info) {
    return json::write_fields(info, fields::template_members);
}

json::object describe(const TemplatePage& page) {
    return json::write_fields(page, fields::page_members(fields::template_members));
}

json::object describe(const PushedImage& pushed) {
    json::object out;
    out["reference"] = pushed.reference;
    out["digest"] = pushed.digest;
    out["size"] = pushed.size;
    return out;
}

json::object describe(const ImageDetails& details) {
    auto map = [](const std::map<std::string, std::string>& from) {
        json::object object;
        for (const auto& [name, value] : from)
            object[name] = value;
        return object;
    };
    auto list = [](const std::vector<std::string>& from) {
        return json::array(from.begin(), from.end());
    };
    json::object out = describe(details.info);
    out["platform"] = details.os + "/" + details.architecture;
    out["source"] = details.source.empty() ? json::value() : json::value(details.source);
    out["env"] = map(details.env);
    out["user"] = details.user;
    out["working_directory"] = details.working_directory;
    out["entrypoint"] = list(details.entrypoint);
    out["cmd"] = list(details.cmd);
    out["labels"] = map(details.labels);
    out["exposed_ports"] = list(details.exposed_ports);
    json::array layers;
    for (const auto& layer : details.layers) {
        layers.emplace_back(json::object{{"diff_id", layer.diff_id}, {"size", layer.size}});
    }
    out["layers"] = std::move(layers);
    return out;
}

json::object describe(const DiagnosticContent& content) {
    json::object out;
    out["sandbox_id"] = content.sandbox_id;
    out["kind"] = content.kind;
    out["scope"] = content.scope;
    out["delivery"] = content.delivery;
    out["content_type"] = content.content_type;
    out["truncated"] = content.truncated;
    out["content"] = or_null(content.content);
    out["content_url"] = or_null(content.content_url);
    out["content_length"] =
        content.content_length ? json::value(*content.content_length) : json::value();
    out["expires_at"] = or_null(content.expires_at);
    out["warnings"] = content.warnings ? json::value(list_of(*content.warnings)) : json::value();
    return out;
}

}  // namespace opensandbox::sdk
