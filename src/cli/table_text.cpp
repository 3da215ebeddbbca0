#include "cli/document.hpp"

#include <algorithm>

namespace opensandbox::cli {

namespace {

/// Columns on a terminal: one for each UTF-8 character, which is right for all but wide scripts.
std::size_t width_of(std::string_view text) {
    return static_cast<std::size_t>(
        std::ranges::count_if(text, [](unsigned char c) { return (c & 0xc0) != 0x80; }));
}

const json::value* member_at(const json::value& from, std::string_view path) {
    const json::value* at = &from;
    while (!path.empty()) {
        const auto dot = path.find('.');
        const auto* object = at->if_object();
        at = object ? object->if_contains(path.substr(0, dot)) : nullptr;
        if (!at) return nullptr;
        path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
    }
    return at;
}

std::string aligned(const std::vector<std::vector<std::string>>& lines) {
    std::vector<std::size_t> widths;
    for (const auto& line : lines) {
        widths.resize(std::max(widths.size(), line.size()));
        for (std::size_t i = 0; i < line.size(); ++i) {
            widths[i] = std::max(widths[i], width_of(line[i]));
        }
    }
    std::string text;
    for (const auto& line : lines) {
        for (std::size_t i = 0; i < line.size(); ++i) {
            text += line[i];
            if (i + 1 < line.size()) text.append(widths[i] - width_of(line[i]) + 2, ' ');
        }
        text += '\n';
    }
    return text;
}

std::string clean(std::string_view text) {
    std::string out(text);
    std::ranges::replace_if(out, [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
    return out;
}

}  // namespace

std::string to_cell_text(const json::value& from) {
    if (from.is_null()) return "-";
    if (from.is_string()) return from.get_string().empty() ? "-" : clean(from.get_string());
    if (from.is_double()) return to_number_text(from.get_double());
    std::string text;
    if (const auto* array = from.if_array()) {
        for (const auto& item : *array)
            text += (text.empty() ? "" : " ") + to_cell_text(item);
        return text.empty() ? "-" : text;
    }
    if (const auto* object = from.if_object()) {
        for (const auto& member : *object) {
            if (member.value().is_null()) continue;
            if (!text.empty()) text += ", ";
            text += clean(member.key()) + "=" + to_cell_text(member.value());
        }
        return text.empty() ? "-" : text;
    }
    return json::serialize(from);
}

std::string to_table_text(const json::array& rows, const std::vector<Column>& columns) {
    std::vector<std::vector<std::string>> lines(1);
    for (const auto& column : columns)
        lines.front().emplace_back(column.title);
    for (const auto& row : rows) {
        auto& line = lines.emplace_back();
        for (const auto& column : columns) {
            const json::value* member = member_at(row, column.path);
            line.push_back(member ? to_cell_text(*member) : "-");
        }
    }
    return aligned(lines);
}

std::string to_key_value_text(const json::object& from) {
    std::vector<std::vector<std::string>> lines;
    for (const auto& member : from) {
        lines.push_back({std::string(member.key()), to_cell_text(member.value())});
    }
    return aligned(lines);
}

}  // namespace opensandbox::cli
