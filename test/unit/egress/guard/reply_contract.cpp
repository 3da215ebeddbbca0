#include "reply_contract.hpp"

#include "support/json_schema.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

namespace opensandbox::egress::test {

namespace {

namespace json = boost::json;

constexpr unsigned char kDocument[] = {
#include "test/egress.json.inc"
};

const json::value& document() {
    static const json::value parsed =
        json::parse(std::string_view(reinterpret_cast<const char*>(kDocument), sizeof kDocument));
    return parsed;
}

struct Answer {
    std::string status;
    std::map<std::string, std::string> fields;  ///< names in lower case
    std::string body;
};

std::string lower(std::string text) {
    std::ranges::transform(text, text.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
    return text;
}

Answer read_answer(std::string_view text) {
    Answer answer;
    if (text.size() > 12) answer.status = text.substr(9, 3);
    while (true) {
        const std::size_t end = text.find('\n');
        if (end == std::string_view::npos) return answer;
        std::string_view line = text.substr(0, end);
        text.remove_prefix(end + 1);
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (line.empty()) break;
        const std::size_t colon = line.find(": ");
        if (colon == std::string_view::npos) continue;
        answer.fields[lower(std::string(line.substr(0, colon)))] = line.substr(colon + 2);
    }
    answer.body = text;
    return answer;
}

/// The segments of a path.
std::vector<std::string_view> segments(std::string_view path) {
    std::vector<std::string_view> out;
    while (!path.empty()) {
        path.remove_prefix(1);
        out.push_back(path.substr(0, path.find('/')));
        path.remove_prefix(out.back().size());
    }
    return out;
}

bool matches(std::string_view pattern, std::string_view path) {
    return std::ranges::equal(segments(pattern), segments(path), [](auto part, auto segment) {
        return part == segment || (part.starts_with('{') && !segment.empty());
    });
}

/// The document's routes for a path, the one without parameters first; null when it has none.
const json::object* route_of(std::string_view path) {
    const json::object& paths = document().at("paths").as_object();
    if (const auto* exact = paths.if_contains(path)) return &exact->as_object();
    for (const auto& [pattern, item] : paths) {
        if (matches(pattern, path)) return &item.as_object();
    }
    return nullptr;
}

std::string check_reply(const json::object& responses, const Answer& answer) {
    const test_support::JsonSchema schema(document());
    const auto* found = responses.if_contains(answer.status);
    if (!found) return "the document has no such status here";
    const json::object& response = schema.resolve(*found);
    if (const auto* headers = response.if_contains("headers")) {
        for (const auto& [name, header] : headers->as_object()) {
            const auto field = answer.fields.find(lower(std::string(name)));
            if (field == answer.fields.end()) return "there is no " + std::string(name);
            std::string wrong =
                schema.check(header.at("schema"), json::value(field->second), std::string(name));
            if (!wrong.empty()) return wrong;
        }
    }
    const auto* content = response.if_contains("content");
    if (!content) return answer.body.empty() ? "" : "a body where there must be none";
    const auto type = answer.fields.find("content-type");
    if (type == answer.fields.end()) return "there is no Content-Type";
    const std::string kind = type->second.substr(0, type->second.find(';'));
    const auto* form = content->as_object().if_contains(kind);
    if (!form) return "the body is " + type->second;
    if (kind != "application/json") {
        return schema.check(form->at("schema"), json::value(answer.body), "body");
    }
    if (!answer.body.ends_with('\n')) return "the body does not end its line";
    json::error_code failed;
    const json::value body = json::parse(answer.body, failed);
    if (failed) return "the body is no JSON";
    return schema.check(form->at("schema"), body, "body");
}

}  // namespace

std::string breach_of_contract(std::string_view method, std::string_view target,
                               std::string_view text) {
    const Answer answer = read_answer(text);
    const json::object* route = route_of(target.substr(0, target.find('?')));
    const auto* operation = route ? route->if_contains(lower(std::string(method))) : nullptr;
    std::string wrong;
    if (operation) {
        wrong = check_reply(operation->at("responses").as_object(), answer);
    } else if (answer.status != "401" && answer.status != "404" && answer.status != "405") {
        wrong = "a route that the document does not have";
    }
    if (wrong.empty()) return {};
    return std::string(method) + " " + std::string(target) + " -> " + answer.status + ": " + wrong;
}

}  // namespace opensandbox::egress::test
