#include "model/json_text.hpp"

namespace opensandbox::model {
std::string json_string(std::string_view text) {
    std::string out;
    append_json_string(out, text);
    return out;
}

void append_json_map(std::string& out, const StringMap& map) {
    out += '{';
    bool first = true;
    for (const auto& [key, value] : map) {
        if (!first) out += ',';
        first = false;
        append_json_string(out, key);
        out += ':';
        append_json_string(out, value);
    }
    out += '}';
}

void append_json_list(std::string& out, const std::vector<std::string>& list) {
    out += '[';
    for (std::size_t i = 0; i < list.size(); ++i) {
        if (i > 0) out += ',';
        append_json_string(out, list[i]);
    }
    out += ']';
}

void append_json_status(std::string& out, std::string_view state, std::string_view reason,
                        std::string_view message, Timestamp last_transition_at) {
    out += "\"status\":{\"state\":";
    append_json_string(out, state);
    if (!reason.empty()) {
        out += ",\"reason\":";
        append_json_string(out, reason);
    }
    if (!message.empty()) {
        out += ",\"message\":";
        append_json_string(out, message);
    }
    out += ",\"lastTransitionAt\":\"" + to_rfc3339(last_transition_at) + "\"}";
}

}  // namespace opensandbox::model
