#include "agent/pty/frames.hpp"

#include "agent/ground/reply.hpp"
#include "base/json_string.hpp"
#include "json/document.hpp"

#include <array>
#include <limits>
#include <signal.h>

namespace opensandbox::agent::pty {
namespace {

using Kind = Request::Kind;

int signal_number(std::string_view name) {
    static constexpr std::array<std::pair<std::string_view, int>, 5> kKnown{{{"SIGINT", SIGINT},
                                                                             {"SIGTERM", SIGTERM},
                                                                             {"SIGKILL", SIGKILL},
                                                                             {"SIGQUIT", SIGQUIT},
                                                                             {"SIGHUP", SIGHUP}}};
    for (const auto& [known, number] : kKnown) {
        if (name == known) return number;
    }
    return 0;
}

/// 0 when it is no size.
std::uint16_t dimension(const json::object& members, std::string_view name) {
    auto member = json::get_integer(members, name);
    std::int64_t value = member ? member->value_or(0) : 0;
    if (value <= 0 || value > std::numeric_limits<std::uint16_t>::max()) return 0;
    return static_cast<std::uint16_t>(value);
}

Request input_request(std::string bytes) {
    Request request(bytes.empty() ? Kind::nothing : Kind::input);
    request.data = std::move(bytes);
    return request;
}

Request resize_request(const json::object& members) {
    Request request(Kind::resize);
    request.columns = dimension(members, "cols");
    request.rows = dimension(members, "rows");
    if (request.columns == 0 || request.rows == 0) return Request(Kind::nothing);
    return request;
}

Request signal_request(const json::object& members) {
    auto name = json::get_string(members, "signal");
    Request request(Kind::signal);
    request.signal = name ? signal_number(name->value_or("")) : 0;
    return request.signal != 0 ? request : Request(Kind::nothing);
}

}  // namespace

Request parse_binary(std::string bytes) {
    if (bytes.empty() || bytes.front() != kInput) return Request(Kind::nothing);
    bytes.erase(0, 1);
    return input_request(std::move(bytes));
}

Request parse_text(std::string_view text) {
    auto document = json::parse(text);
    if (!document || !document->is_object()) return Request(Kind::nothing);
    json::object members = with_lower_names(document->get_object());
    auto type = json::get_string(members, "type");
    if (!type) return Request(Kind::nothing);
    const std::string name = type->value_or("");
    if (name == "stdin") {
        auto data = json::get_string(members, "data");
        return input_request(data ? data->value_or("") : std::string());
    }
    if (name == "resize") return resize_request(members);
    if (name == "signal") return signal_request(members);
    if (name == "ping") return Request(Kind::ping);
    Request unknown(Kind::unknown);
    unknown.data = name;
    return unknown;
}

std::string replay_head(std::uint64_t offset) {
    std::string out(1, kReplay);
    for (int shift = 56; shift >= 0; shift -= 8)
        out += static_cast<char>(offset >> shift & 0xFF);
    return out;
}

std::string connected_text(std::string_view session_id, bool terminal, bool viewer) {
    std::string out = R"({"type":"connected","session_id":)";
    append_json_string(out, session_id);
    out += terminal ? R"(,"mode":"pty")" : R"(,"mode":"pipe")";
    out += viewer ? R"(,"role":"viewer"})" : R"(,"role":"holder"})";
    return out + '\n';
}

std::string exit_text(int code) {
    return R"({"type":"exit","exit_code":)" + std::to_string(code) + "}\n";
}

std::string error_text(std::string_view code, std::string_view message) {
    std::string out = R"({"type":"error","error":)";
    append_json_string(out, message);
    out += R"(,"code":)";
    append_json_string(out, code);
    return out + "}\n";
}

std::string pong_text() {
    return "{\"type\":\"pong\"}\n";
}

}  // namespace opensandbox::agent::pty
