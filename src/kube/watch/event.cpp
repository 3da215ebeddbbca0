#include "kube/watch/event.hpp"

#include "kube/api/failure.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace opensandbox::kube {
namespace {

constexpr std::array<std::pair<std::string_view, WatchEvent::Type>, 4> kTypes{{
    {"ADDED", WatchEvent::Type::added},
    {"MODIFIED", WatchEvent::Type::modified},
    {"DELETED", WatchEvent::Type::deleted},
    {"BOOKMARK", WatchEvent::Type::bookmark},
}};
constexpr const char* kInitialEventsEnd = "k8s.io/initial-events-end";

Error no_event(std::string_view why) {
    return {ErrorCode::protocol, "an event of a watch: " + std::string(why)};
}

const json::object* object_in(const json::object& from, std::string_view name) {
    const json::value* found = json::find(from, name);
    return found && found->is_object() ? &found->get_object() : nullptr;
}

}  // namespace

Result<WatchEvent> read_event(std::string_view line, const json::Selection* selection) {
    auto document = selection ? json::parse_selected(line, *selection) : json::parse(line);
    if (!document) return no_event(document.error().message());
    if (!document->is_object()) return no_event("is no object");
    json::object& from = document->get_object();
    auto type = json::get_string(from, "type");
    if (!type) return no_event(type.error().message());
    // What went wrong stands in other members than those that are selected.
    if (type->value_or("") == "ERROR") {
        auto whole = json::parse(line);
        const json::object* status = object_in(whole->get_object(), "object");
        return failure_of_event(status ? json::serialize(*status) : std::string());
    }
    json::value* object = from.if_contains("object");
    if (!object || !object->is_object()) return no_event("object: must be an object");
    WatchEvent event;
    const auto* known = std::find_if(kTypes.begin(), kTypes.end(),
                                     [&](const auto& row) { return row.first == *type; });
    if (known == kTypes.end()) return no_event("type: is none of ours");
    event.type = known->second;
    event.object = std::move(object->get_object());
    const json::object* metadata = object_in(event.object, "metadata");
    if (!metadata) return no_event("object: metadata: is missing");
    auto version = json::get_string(*metadata, "resourceVersion");
    if (!version) return no_event(version.error().message());
    event.resource_version = version->value_or("");
    if (const json::object* annotations = object_in(*metadata, "annotations")) {
        const json::value* end = json::find(*annotations, kInitialEventsEnd);
        event.initial_events_end = end && end->is_string() && end->get_string() == "true";
    }
    return event;
}

}  // namespace opensandbox::kube
