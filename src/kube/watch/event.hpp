#pragma once

#include "base/error.hpp"
#include "json/selection.hpp"

#include <string>
#include <string_view>

namespace opensandbox::kube {

/// One event of a watch.
struct WatchEvent {
    enum class Type : std::uint8_t { added, modified, deleted, bookmark };
    Type type = Type::bookmark;
    json::object object;
    std::string resource_version;     ///< of the object: where the watch is now
    bool initial_events_end = false;  ///< of a bookmark: what was there at first is told
};

/// Reads the line of an event, of its object only what is in `selection` (null: all); paths begin
/// with "object". An event ERROR is the error that its object says, "Expired" (410) for a version
/// that is too old; `protocol` when it is no event.
Result<WatchEvent> read_event(std::string_view line, const json::Selection* selection);

}  // namespace opensandbox::kube
