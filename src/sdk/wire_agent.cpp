#include "sdk/output_event.hpp"
#include "sdk/wire.hpp"
#include "sdk/wire_reader.hpp"

#include <array>

namespace opensandbox::sdk::wire {

namespace {

struct EventName {
    std::string_view name;
    EventType type;
};

constexpr std::array kEventNames{
    EventName{"init", EventType::init},
    EventName{"stdout", EventType::standard_output},
    EventName{"stderr", EventType::standard_error},
    EventName{"status", EventType::status},
    EventName{"execution_count", EventType::execution_count},
    EventName{"result", EventType::result},
    EventName{"error", EventType::error},
    EventName{"execution_complete", EventType::execution_complete},
    EventName{"ping", EventType::ping},
};

EventType event_type(std::string_view name) {
    for (const auto& entry : kEventNames) {
        if (entry.name == name) return entry.type;
    }
    return EventType::other;
}

/// A failure after the first event may come as a bare `{code,message}` (execd contract section 2).
Event event_of_bare_error(ObjectReader& in) {
    Event event;
    event.type = EventType::error;
    event.error.name = in.string("code");
    event.error.value = in.optional_string("message").value_or("");
    return event;
}

void read_results(const json::object& results, Event& event) {
    for (const auto& member : results) {
        std::string text = member.value().is_string() ? std::string(member.value().get_string())
                                                      : json::serialize(member.value());
        event.results.emplace_back(std::string(member.key()), std::move(text));
    }
}

json::object permissions_object(const Permissions& wanted) {
    json::object object;
    // A mode of 0 means "leave it" on the wire, as an absent one does here.
    object["mode"] = wanted.mode ? mode_to_wire(*wanted.mode) : 0;
    if (wanted.owner) object["owner"] = *wanted.owner;
    if (wanted.group) object["group"] = *wanted.group;
    return object;
}

Result<FileInfo> file_of(const json::value& from) {
    if (!from.is_object()) {
        return Error(ErrorCode::protocol, "the answer breaks its format: an entry is no object");
    }
    ObjectReader in(from.get_object());
    FileInfo info;
    info.path = in.string("path");
    std::string type = in.optional_string("type").value_or("file");
    info.type = type == "directory" ? FileType::directory
                : type == "symlink" ? FileType::symlink
                : type == "file"    ? FileType::file
                                    : FileType::other;
    info.size = static_cast<std::uint64_t>(in.integer("size"));
    info.modified_at = in.time("modified_at");
    info.created_at = in.time("created_at");
    info.owner = in.string("owner");
    info.group = in.string("group");
    auto mode = mode_from_wire(in.integer("mode"));
    if (!mode) in.fail("mode", "must have octal digits");
    info.mode = mode.value_or(0);
    if (in.failed()) return in.error();
    return info;
}

}  // namespace

std::string encode_command(const CommandRequest& request, bool background) {
    json::object body;
    if (!request.argv.empty()) {
        json::array argv;
        for (const auto& argument : request.argv)
            argv.emplace_back(argument);
        body["argv"] = std::move(argv);
    } else {
        body["command"] = request.command;
    }
    if (!request.working_directory.empty()) body["cwd"] = request.working_directory;
    if (background) body["background"] = true;
    if (request.timeout.count() > 0) body["timeout"] = request.timeout.count();
    if (request.uid) body["uid"] = *request.uid;
    if (request.gid) body["gid"] = *request.gid;
    if (!request.environment.empty()) {
        json::object environment;
        for (const auto& [name, value] : request.environment)
            environment[name] = value;
        body["envs"] = std::move(environment);
    }
    return json::serialize(body);
}

Result<Event> decode_event(std::string_view frame) {
    if (auto output = scan_output_event(frame)) return std::move(*output);
    return decode_any_event(frame);
}

Result<Event> decode_any_event(std::string_view frame) {
    auto document = parse_object(frame);
    if (!document) return document.error();
    ObjectReader in(*document);
    auto type = in.optional_string("type");
    if (!type && document->contains("code")) return event_of_bare_error(in);
    if (!type) in.fail("type", "is missing");

    Event event;
    event.type = event_type(type.value_or(""));
    event.text = in.optional_string("text").value_or("");
    event.timestamp = in.optional_integer("timestamp").value_or(0);
    event.execution_time = in.optional_integer("execution_time").value_or(0);
    event.execution_count = in.optional_integer("execution_count").value_or(0);
    if (const json::object* results = in.optional_object("results")) read_results(*results, event);
    if (const json::object* error = in.optional_object("error")) {
        ObjectReader reader(*error);
        event.error.name = reader.optional_string("ename").value_or("");
        event.error.value = reader.optional_string("evalue").value_or("");
        event.error.traceback = reader.strings("traceback");
        if (reader.failed()) return reader.error().within("error");
    }
    if (in.failed()) return in.error();
    return event;
}

Result<CommandStatus> decode_command_status(std::string_view body) {
    auto document = parse_object(body);
    if (!document) return document.error();
    ObjectReader in(*document);
    CommandStatus status;
    status.id = in.optional_string("id").value_or("");
    status.content = in.optional_string("content");
    status.running = in.optional_boolean("running").value_or(false);
    if (auto code = in.optional_integer("exit_code")) status.exit_code = static_cast<int>(*code);
    status.error = in.optional_string("error");
    status.started_at = in.optional_time("started_at");
    status.finished_at = in.optional_time("finished_at");
    if (in.failed()) return in.error();
    return status;
}

Result<CommandPage> decode_command_page(std::string_view body) {
    auto document = parse_object(body);
    if (!document) return document.error();
    ObjectReader in(*document);
    CommandPage page;
    for (const json::value& item : in.array("commands")) {
        if (!item.is_object()) {
            return Error(ErrorCode::protocol,
                         "the answer breaks its format: a command is no object");
        }
        ObjectReader reader(item.get_object());
        CommandSummary command;
        command.id = reader.string("session");
        command.running = reader.boolean("running");
        command.background = reader.boolean("background");
        command.started_at = reader.optional_time("started_at");
        command.finished_at = reader.optional_time("finished_at");
        auto code = reader.optional_integer("exit_code");
        if (code) command.exit_code = static_cast<int>(*code);
        command.error = reader.optional_string("error");
        if (reader.failed()) return reader.error().within("commands");
        page.items.push_back(std::move(command));
    }
    if (const json::object* pagination = in.optional_object("pagination")) {
        ObjectReader reader(*pagination);
        page.next_cursor = reader.optional_string("nextCursor");
        if (reader.failed()) return reader.error().within("pagination");
    }
    if (in.failed()) return in.error();
    return page;
}

Result<Metrics> decode_metrics(std::string_view body) {
    auto document = parse_object(body);
    if (!document) return document.error();
    ObjectReader in(*document);
    if (auto problem = in.optional_string("error")) return Error(ErrorCode::internal, *problem);
    Metrics metrics;
    metrics.cpu_count = in.number("cpu_count");
    metrics.cpu_used_percentage = in.number("cpu_used_pct");
    metrics.memory_total_in_mib = in.number("mem_total_mib");
    metrics.memory_used_in_mib = in.number("mem_used_mib");
    metrics.timestamp = in.integer("timestamp");
    if (in.failed()) return in.error();
    return metrics;
}

std::int64_t mode_to_wire(std::uint32_t mode) {
    std::int64_t digits = 0;
    std::int64_t place = 1;
    for (mode &= 07777; mode != 0; mode >>= 3, place *= 10)
        digits += (mode & 7) * place;
    return digits;
}

std::optional<std::uint32_t> mode_from_wire(std::int64_t digits) {
    if (digits < 0 || digits > 7777) return std::nullopt;
    std::uint32_t mode = 0;
    for (unsigned shift = 0; digits != 0; shift += 3, digits /= 10) {
        if (digits % 10 > 7) return std::nullopt;
        mode |= static_cast<std::uint32_t>(digits % 10) << shift;
    }
    return mode;
}

std::string encode_permissions(const std::vector<std::string>& paths, const Permissions& wanted) {
    json::object body;
    for (const auto& path : paths)
        body[path] = permissions_object(wanted);
    return json::serialize(body);
}

std::string encode_upload_metadata(std::string_view path, const Permissions& wanted) {
    json::object body = permissions_object(wanted);
    body["path"] = path;
    return json::serialize(body);
}

std::string encode_move(std::string_view from, std::string_view to) {
    json::array body;
    body.emplace_back(json::object{{"src", from}, {"dest", to}});
    return json::serialize(body);
}

std::string encode_replace(std::string_view path, std::string_view old_text,
                           std::string_view new_text) {
    json::object body;
    body[path] = json::object{{"old", old_text}, {"new", new_text}};
    return json::serialize(body);
}

Result<std::vector<FileInfo>> decode_file_list(std::string_view body) {
    auto document = parse_array(body);
    if (!document) return document.error();
    std::vector<FileInfo> files;
    files.reserve(document->size());
    for (const json::value& item : *document) {
        auto info = file_of(item);
        if (!info) return info.error();
        files.push_back(std::move(*info));
    }
    return files;
}

Result<std::vector<FileInfo>> decode_file_map(std::string_view body,
                                              const std::vector<std::string>& paths) {
    auto document = parse_object(body);
    if (!document) return document.error();
    std::vector<FileInfo> files;
    for (const auto& path : paths) {
        const json::value* member = json::find(*document, path);
        if (!member) {
            return Error(ErrorCode::protocol,
                         "the answer breaks its format: " + path + ": is missing");
        }
        auto info = file_of(*member);
        if (!info) return info.error();
        files.push_back(std::move(*info));
    }
    return files;
}

Result<std::uint64_t> decode_replaced_count(std::string_view body, const std::string& path) {
    auto document = parse_object(body);
    if (!document) return document.error();
    ObjectReader in(*document);
    ObjectReader entry(in.object(path));
    if (in.failed()) return in.error();
    auto count = entry.integer("replacedCount");
    if (entry.failed()) return entry.error().within(path);
    return static_cast<std::uint64_t>(count);
}

}  // namespace opensandbox::sdk::wire
