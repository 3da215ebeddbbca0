#include "mcp/tools/describe.hpp"

#include "mcp/document_schema.hpp"
#include "sdk/fields/file.hpp"
#include "sdk/fields/page.hpp"
#include "sdk/fields/sandbox.hpp"

#include <algorithm>
#include <cmath>

namespace opensandbox::mcp {

using schema::Object;

namespace {

constexpr double kLongestSeconds = 1e9;

json::object message_schema() {
    return Object()
        .required("text", schema::text())
        .required("timestamp", schema::integer(), "Milliseconds since the epoch")
        .optional("is_error", schema::boolean(), false)
        .build(true);
}

json::object logs_schema() {
    return Object()
        .required("stdout", schema::list_of(message_schema()))
        .required("stderr", schema::list_of(message_schema()))
        .build(true);
}

json::object execution_error_schema() {
    return Object()
        .required("name", schema::text())
        .required("value", schema::text(), "Of a command: its exit code")
        .required("timestamp", schema::integer())
        .possible("traceback", schema::list_of(schema::text()))
        .build(true);
}

}  // namespace

json::object sandbox_info_schema() {
    return document_schema<sdk::SandboxInfo>(sdk::fields::kSandboxMembers);
}

json::object sandbox_schema() {
    return Object()
        .required("sandbox_id", schema::text(), "What the other tools are given")
        .required("info", sandbox_info_schema())
        .build(true);
}

json::object pagination_schema() {
    return document_schema<sdk::Pagination>(sdk::fields::kPaginationMembers);
}

json::object status_schema() {
    return Object().required("status", schema::text()).build(true);
}

json::object execution_schema() {
    const json::object complete = Object()
                                      .required("timestamp", schema::integer())
                                      .required("execution_time_in_millis", schema::integer())
                                      .build(true);
    return Object()
        .nullable("id", schema::text(), "The execution_id of the other command tools")
        .nullable("exit_code", schema::integer(), "128 + n when signal n ended it")
        .nullable("error", execution_error_schema(), "Set when the exit code is not 0")
        .nullable("complete", complete, "Set when it ended well")
        .required("logs", logs_schema())
        .nullable("execution_count", schema::integer())
        .possible("result", schema::list_of(Object().build(true)), "Contents by media type")
        .possible("results_left_out", schema::list_of(Object().build(true)),
                  "Type and bytes of contents of results that were too large")
        .required("truncated", schema::boolean(), "Whether more was written than is here")
        .nullable("stdout_cursor", schema::integer(),
                  "Where command_logs with stream=stdout goes on")
        .nullable("stderr_cursor", schema::integer(),
                  "Where command_logs with stream=stderr goes on")
        .build(true);
}

json::object network_rule_schema() {
    return Object()
        .required("action", schema::one_of({"allow", "deny"}))
        .possible("target", schema::text(),
                  "example.com, *.example.com, example.com:443, an address or a block; without it "
                  "the ports of every address")
        .possible("ports", schema::list_of(schema::integer(1, 65535)),
                  "TCP ports that the rule for an address or a block is limited to")
        .build();
}

json::object file_schema() {
    return document_schema<sdk::FileInfo>(sdk::fields::kFileMembers);
}

json::object status_document(std::string_view word) {
    json::object out;
    out["status"] = word;
    return out;
}

json::object sandbox_document(const sdk::SandboxInfo& info) {
    json::object out;
    out["sandbox_id"] = info.id;
    out["info"] = sdk::describe(info);
    return out;
}

Object with_sandbox() {
    Object members;
    members.required("sandbox_id", schema::text(), "Id of the sandbox");
    return members;
}

Object& add_connect_if_missing(Object& members) {
    return members.optional("connect_if_missing", schema::boolean(), false,
                            "Connect to the sandbox when this session has not done so yet");
}

std::chrono::seconds whole_seconds(double seconds) {
    return std::chrono::seconds(
        static_cast<std::int64_t>(std::ceil(std::clamp(seconds, 0.0, kLongestSeconds))));
}

std::chrono::milliseconds milliseconds_of(double seconds) {
    constexpr double kMilli = 1000;
    return std::chrono::milliseconds(
        static_cast<std::int64_t>(std::clamp(seconds, 0.0, kLongestSeconds) * kMilli));
}

sdk::Error invalid(std::string_view name, std::string_view expected) {
    return {sdk::ErrorCode::invalid_argument, std::string(name) + ": " + std::string(expected)};
}

}  // namespace opensandbox::mcp
