#include "json/document.hpp"
#include "store/rows.hpp"

namespace opensandbox::store {

std::string map_to_json(const model::StringMap& map) {
    std::string text;
    model::append_json_map(text, map);
    return text;
}

std::string list_to_json(const std::vector<std::string>& list) {
    std::string text;
    model::append_json_list(text, list);
    return text;
}

std::optional<model::StringMap> map_from_json(std::string_view text) {
    auto parsed = json::parse(text);
    if (!parsed || !parsed->is_object()) return std::nullopt;
    model::StringMap map;
    for (const auto& [key, item] : parsed->get_object()) {
        if (!item.is_string()) return std::nullopt;
        map.emplace_back(std::string(key), std::string(item.get_string()));
    }
    return map;
}

std::optional<std::vector<std::string>> list_from_json(std::string_view text) {
    auto parsed = json::parse(text);
    if (!parsed || !parsed->is_array()) return std::nullopt;
    std::vector<std::string> list;
    for (const auto& item : parsed->get_array()) {
        if (!item.is_string()) return std::nullopt;
        list.emplace_back(item.get_string());
    }
    return list;
}

}  // namespace opensandbox::store
