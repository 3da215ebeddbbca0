#include "sdk/fields/command.hpp"
#include "sdk/fields/file.hpp"
#include "sdk/fields/metrics.hpp"
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
    return read_document<FileInfo>(from.get_object(), fields::kFileMembers);
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
    return decode_document<CommandStatus>(body, fields::kCommandStatusMembers);
}

Result<CommandPage> decode_command_page(std::string_view body) {
    return decode_document<CommandPage>(body, fields::kCommandPageMembers);
}

Result<Metrics> decode_metrics(std::string_view body) {
    auto document = parse_object(body);
    if (!document) return document.error();
    ObjectReader in(*document);
    if (auto problem = in.optional_string("error")) return Error(ErrorCode::internal, *problem);
    if (in.failed()) return in.error();
    return read_document<Metrics>(*document, fields::kMetricsMembers);
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

std::string encode_session(const std::string& working_directory) {
    json::object body;
    if (!working_directory.empty()) body["cwd"] = working_directory;
    return json::serialize(body);
}

std::string encode_session_run(const SessionRequest& request) {
    json::object body{{"command", request.command}};
    if (!request.working_directory.empty()) body["cwd"] = request.working_directory;
    if (request.timeout.count() > 0) body["timeout"] = request.timeout.count();
    return json::serialize(body);
}

Result<std::string> decode_session_id(std::string_view body) {
    auto document = parse_object(body);
    if (!document) return document.error();
    ObjectReader in(*document);
    std::string id = in.string("session_id");
    if (id.empty()) in.fail("session_id", "is empty");
    if (in.failed()) return in.error();
    return id;
}

}  // namespace opensandbox::sdk::wire
