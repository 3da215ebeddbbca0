#include "sdk/wire_sessions.hpp"

#include "sdk/wire_reader.hpp"

namespace opensandbox::sdk::wire {

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
