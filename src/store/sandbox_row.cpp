#include "store/rows.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace opensandbox::store {
namespace {

constexpr std::array<std::string_view, 32> kColumns{"id",
                                                    "image",
                                                    "platform_os",
                                                    "platform_arch",
                                                    "state",
                                                    "reason",
                                                    "message",
                                                    "transition_at",
                                                    "metadata",
                                                    "extensions",
                                                    "entrypoint",
                                                    "expires_at",
                                                    "created_at",
                                                    "agent_host",
                                                    "agent_port",
                                                    "agent_token",
                                                    "renew_seconds",
                                                    "snapshot_id",
                                                    "base_image",
                                                    "tenant",
                                                    "http_port",
                                                    "internal_host",
                                                    "host_network",
                                                    "egress_token",
                                                    "cpu_millicores",
                                                    "memory_bytes",
                                                    "pool",
                                                    "pool_idle",
                                                    "published",
                                                    "egress_port",
                                                    "image_digest",
                                                    "interception_mode"};

std::optional<std::uint16_t> port_of(std::string_view text) {
    std::uint16_t port = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return port;
}

}  // namespace

std::string ports_to_text(const PublishedPorts& ports) {
    std::string text;
    for (const auto& [inside, outside] : ports) {
        text += text.empty() ? "" : ",";
        text += std::to_string(inside) + ":" + std::to_string(outside);
    }
    return text;
}

std::optional<PublishedPorts> ports_from_text(std::string_view text) {
    PublishedPorts ports;
    while (!text.empty()) {
        const std::string_view item = text.substr(0, text.find(','));
        text.remove_prefix(std::min(text.size(), item.size() + 1));
        const std::size_t colon = item.find(':');
        if (colon == std::string_view::npos) return std::nullopt;
        const auto inside = port_of(item.substr(0, colon));
        const auto outside = port_of(item.substr(colon + 1));
        if (!inside || !outside) return std::nullopt;
        ports.emplace_back(*inside, *outside);
    }
    return ports;
}

std::string sandbox_columns() {
    std::string list;
    for (std::string_view column : kColumns)
        list += (list.empty() ? "" : ", ") + std::string(column);
    return list;
}

std::string sandbox_placeholders() {
    std::string list;
    for (std::size_t i = 0; i < kColumns.size(); ++i)
        list += list.empty() ? "?" : ",?";
    return list;
}

void bind_row(Statement& insert, const SandboxRecord& record) {
    const model::Sandbox& sandbox = record.sandbox;
    const model::Endpoints& endpoints = record.endpoints;
    int at = 0;
    auto bind = [&](const auto& value) { insert.bind(++at, value); };
    bind(std::string_view(sandbox.id));
    bind(std::string_view(sandbox.image_uri));
    bind(sandbox.platform ? std::string_view(sandbox.platform->os) : std::string_view());
    bind(sandbox.platform ? std::string_view(sandbox.platform->arch) : std::string_view());
    bind(model::to_string(sandbox.status.state));
    bind(std::string_view(sandbox.status.reason));
    bind(std::string_view(sandbox.status.message));
    bind(micros(sandbox.status.last_transition_at));
    if (sandbox.metadata) {
        bind(std::string_view(map_to_json(*sandbox.metadata)));
    } else {
        insert.bind_null(++at);
    }
    bind(std::string_view(map_to_json(sandbox.extensions)));
    bind(std::string_view(list_to_json(sandbox.entrypoint)));
    bind(micros(sandbox.expires_at));
    bind(micros(sandbox.created_at));
    bind(std::string_view(endpoints.agent.host));
    bind(static_cast<std::int64_t>(endpoints.agent.port));
    bind(std::string_view(record.agent_token));
    bind(record.renew_seconds);
    bind(std::string_view(sandbox.snapshot_id));
    bind(std::string_view(record.base_image));
    bind(std::string_view(record.tenant));
    bind(static_cast<std::int64_t>(endpoints.http_port));
    bind(std::string_view(endpoints.internal_host));
    bind(static_cast<std::int64_t>(endpoints.host_network));
    bind(std::string_view(endpoints.egress_token));
    bind(record.cpu_millicores);
    bind(record.memory_bytes);
    bind(std::string_view(sandbox.pool));
    bind(static_cast<std::int64_t>(record.pool_idle));
    bind(std::string_view(ports_to_text(endpoints.published)));
    bind(static_cast<std::int64_t>(endpoints.egress_port));
    bind(std::string_view(sandbox.image_digest));
    bind(std::string_view(sandbox.interception_mode));
}

Result<SandboxRecord> read_row(const Statement& row) {
    SandboxRecord record;
    model::Sandbox& sandbox = record.sandbox;
    model::Endpoints& endpoints = record.endpoints;
    sandbox.id = row.text(0);
    auto broken = [&](std::string_view column) {
        return Error(ErrorCode::io,
                     "store: sandbox " + sandbox.id + ": unreadable column " + std::string(column));
    };
    sandbox.image_uri = row.text(1);
    if (std::string os = row.text(2); !os.empty())
        sandbox.platform = model::Platform(os, row.text(3));
    auto state = model::parse_state(row.text(4));
    if (!state) return broken("state");
    sandbox.status =
        model::SandboxStatus(*state, row.text(5), row.text(6), from_micros(row.number(7)));
    if (!row.is_null(8)) {
        sandbox.metadata = map_from_json(row.text(8));
        if (!sandbox.metadata) return broken("metadata");
    }
    auto extensions = map_from_json(row.text(9));
    if (!extensions) return broken("extensions");
    sandbox.extensions = std::move(*extensions);
    auto entrypoint = list_from_json(row.text(10));
    if (!entrypoint) return broken("entrypoint");
    sandbox.entrypoint = std::move(*entrypoint);
    if (!row.is_null(11)) sandbox.expires_at = from_micros(row.number(11));
    sandbox.created_at = from_micros(row.number(12));
    endpoints.agent.host = row.text(13);
    endpoints.agent.port = static_cast<std::uint16_t>(row.number(14));
    record.agent_token = row.text(15);
    if (!row.is_null(16)) record.renew_seconds = row.number(16);
    sandbox.snapshot_id = row.text(17);
    record.base_image = row.text(18);
    record.tenant = row.text(19);
    endpoints.http_port = static_cast<std::uint16_t>(row.number(20));
    endpoints.internal_host = row.text(21);
    endpoints.host_network = row.number(22) != 0;
    endpoints.egress_token = row.text(23);
    record.cpu_millicores = row.number(24);
    record.memory_bytes = row.number(25);
    sandbox.pool = row.text(26);
    record.pool_idle = row.number(27) != 0;
    auto published = ports_from_text(row.text(28));
    if (!published) return broken("published");
    endpoints.published = std::move(*published);
    endpoints.egress_port = static_cast<std::uint16_t>(row.number(29));
    sandbox.image_digest = row.text(30);
    sandbox.interception_mode = row.text(31);
    return record;
}

}  // namespace opensandbox::store
