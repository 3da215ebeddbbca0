#include "runtime/docker/engine/events.hpp"

#include "runtime/docker/engine/decode.hpp"
#include "runtime/docker/engine/document_reader.hpp"

#include <algorithm>
#include <charconv>

namespace opensandbox::runtime::docker {
namespace {

bool has_label(const EngineEvent& event, std::string_view wanted) {
    std::size_t equals = wanted.find('=');
    auto value = event.attribute(wanted.substr(0, equals));
    if (!value) return false;
    return equals == std::string_view::npos || *value == wanted.substr(equals + 1);
}

/// "health_status" stands for "health_status: healthy", too.
bool is_action(std::string_view action, std::string_view wanted) {
    if (!action.starts_with(wanted)) return false;
    return action.size() == wanted.size() || action[wanted.size()] == ':';
}

}  // namespace

bool EventFilter::matches(const EngineEvent& event) const {
    bool typed = types.empty() || std::ranges::find(types, event.type) != types.end();
    bool acted = actions.empty() || std::ranges::any_of(actions, [&](const std::string& wanted) {
                     return is_action(event.action, wanted);
                 });
    return typed && acted && std::ranges::all_of(labels, [&](const std::string& wanted) {
               return has_label(event, wanted);
           });
}

std::optional<std::string> EngineEvent::attribute(std::string_view key) const {
    for (const auto& [name, value] : attributes) {
        if (name == key) return value;
    }
    return std::nullopt;
}

std::optional<std::int64_t> EngineEvent::exit_code() const {
    auto text = attribute("exitCode");
    if (!text) return std::nullopt;
    std::int64_t code = 0;
    auto [end, failure] = std::from_chars(text->data(), text->data() + text->size(), code);
    if (failure != std::errc() || end != text->data() + text->size()) return std::nullopt;
    return code;
}

Result<EngineEvent> decode_event(const json::value& document) {
    DocumentReader read;
    const json::object& from = read.whole(document);
    EngineEvent event;
    event.type = read.text(from, "Type");
    event.action = read.text(from, "Action");
    const json::object& actor = read.object(from, "Actor");
    event.actor_id = read.text(actor, "ID");
    // Podman's word for it.
    if (event.type == "container" && event.action == "remove") event.action = "destroy";
    event.attributes = read.string_map(actor, "Attributes");
    event.time_ns = read.integer(from, "timeNano");
    if (event.time_ns == 0) {
        constexpr std::int64_t kSecond = 1'000'000'000;
        std::int64_t seconds = read.integer(from, "time");
        if (seconds > 0 && seconds < INT64_MAX / kSecond) event.time_ns = seconds * kSecond;
    }
    if (auto status = read.status(); !status) return status.error();
    return event;
}

}  // namespace opensandbox::runtime::docker
