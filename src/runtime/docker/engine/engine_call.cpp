#include "runtime/docker/engine/engine_call.hpp"

#include "json/document.hpp"

namespace opensandbox::runtime::docker {

EngineCall& EngineCall::with(std::string_view name, std::string_view value) {
    query += query.empty() ? '?' : '&';
    query += http::percent_encode(name) + "=" + http::percent_encode(value);
    return *this;
}

std::string path_part(std::string_view text) {
    return http::percent_encode(text, ":@");
}

std::string image_part(std::string_view reference) {
    return http::percent_encode(reference, "/:@");
}

std::string filters_json(
    const std::vector<std::pair<std::string, const std::vector<std::string>*>>& filters) {
    json::object document;
    for (const auto& [name, values] : filters) {
        if (values->empty()) continue;
        json::array list;
        for (const std::string& value : *values)
            list.emplace_back(value);
        document[name] = std::move(list);
    }
    return json::serialize(document);
}

}  // namespace opensandbox::runtime::docker
