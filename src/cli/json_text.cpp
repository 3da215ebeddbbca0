#include "cli/document.hpp"

#include <charconv>
#include <cmath>

namespace opensandbox::cli {

namespace {

void write(const json::value& from, std::size_t indent, std::string& out);

void write_lines(char open, char close, std::size_t count, std::size_t indent, std::string& out,
                 auto write_item) {
    out += open;
    for (std::size_t i = 0; i < count; ++i) {
        out += i == 0 ? "\n" : ",\n";
        out.append(indent + 2, ' ');
        write_item(i);
    }
    if (count > 0) {
        out += '\n';
        out.append(indent, ' ');
    }
    out += close;
}

void write(const json::value& from, std::size_t indent, std::string& out) {
    if (const auto* array = from.if_array()) {
        write_lines('[', ']', array->size(), indent, out,
                    [&](std::size_t i) { write((*array)[i], indent + 2, out); });
    } else if (const auto* object = from.if_object()) {
        auto member = object->begin();
        write_lines('{', '}', object->size(), indent, out, [&](std::size_t) {
            out += json::serialize(json::value(member->key())) + ": ";
            write(member->value(), indent + 2, out);
            ++member;
        });
    } else if (const auto* number = from.if_double()) {
        out += to_number_text(*number);
    } else {
        out += json::serialize(from);
    }
}

}  // namespace

std::string to_number_text(double number) {
    if (!std::isfinite(number)) return "null";
    char text[32];
    auto [end, failed] = std::to_chars(text, text + sizeof text, number);
    std::string shown(text, end);
    if (shown.find_first_of(".e") == std::string::npos) shown += ".0";
    return shown;
}

std::string to_json_text(const json::value& document) {
    std::string text;
    write(document, 0, text);
    return text + "\n";
}

}  // namespace opensandbox::cli
