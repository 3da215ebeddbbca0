#pragma once

#include "json/fields.hpp"

namespace opensandbox::sdk::fields {

inline constexpr auto kCommandStatusMembers = [](auto& walker, auto& status) {
    walker.put(json::Field("id").may_lack(), status.id);
    walker.put(json::Field("content").help("The command"), status.content);
    walker.put(json::Field("running").may_lack(), status.running);
    walker.put("exit_code", status.exit_code);
    walker.put("error", status.error);
    walker.put("started_at", status.started_at);
    walker.put("finished_at", status.finished_at);
};

inline constexpr auto kCommandSummaryMembers = [](auto& walker, auto& command) {
    walker.put(json::Field("session", "id"), command.id);
    walker.put("running", command.running);
    walker.put("background", command.background);
    walker.put("exit_code", command.exit_code);
    walker.put("error", command.error);
    walker.put("started_at", command.started_at);
    walker.put("finished_at", command.finished_at);
};

inline constexpr auto kCommandCursorMembers = [](auto& walker, auto& page) {
    walker.put(json::Field("nextCursor", "next_cursor"), page.next_cursor);
};

inline constexpr auto kCommandPageMembers = [](auto& walker, auto& page) {
    walker.list(json::Field("commands", "items"), page.items, kCommandSummaryMembers);
    walker.object(json::Field("pagination").around().may_lack(), page, kCommandCursorMembers);
};

}  // namespace opensandbox::sdk::fields
