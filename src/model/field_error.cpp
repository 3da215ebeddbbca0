#include "model/field_error.hpp"

#include "model/json_text.hpp"

namespace opensandbox::model {

std::string to_json(const FieldErrors& errors) {
    std::string out = "{\"detail\":[";
    for (std::size_t i = 0; i < errors.size(); ++i) {
        const FieldError& error = errors[i];
        out += i == 0 ? "{\"type\":" : ",{\"type\":";
        append_json_string(out, error.type);
        out += ",\"loc\":[";
        for (std::size_t part = 0; part < error.loc.size(); ++part) {
            if (part > 0) out += ',';
            if (const auto* name = std::get_if<std::string>(&error.loc[part])) {
                append_json_string(out, *name);
            } else {
                out += std::to_string(std::get<std::int64_t>(error.loc[part]));
            }
        }
        out += "],\"msg\":";
        append_json_string(out, error.msg);
        if (!error.input.empty()) out += ",\"input\":" + error.input;
        if (!error.ctx.empty()) out += ",\"ctx\":" + error.ctx;
        out += '}';
    }
    out += "]}";
    return out;
}

std::string to_text(const FieldErrors& errors) {
    std::string out;
    for (const FieldError& error : errors) {
        if (!out.empty()) out += "; ";
        for (std::size_t part = 0; part < error.loc.size(); ++part) {
            if (part > 0) out += '.';
            const auto* name = std::get_if<std::string>(&error.loc[part]);
            out += name ? *name : std::to_string(std::get<std::int64_t>(error.loc[part]));
        }
        out += ": " + error.msg;
    }
    return out;
}

}  // namespace opensandbox::model
