#include "json/yaml.hpp"

#include <charconv>
#include <optional>
#include <yaml.h>

namespace opensandbox::json {

namespace {

constexpr int kMaxDepth = 64;

/// One step of a document; libyaml owns what it points to.
class YamlEvent {
  public:
    YamlEvent() = default;
    ~YamlEvent() { yaml_event_delete(&event_); }
    YamlEvent(const YamlEvent&) = delete;
    YamlEvent& operator=(const YamlEvent&) = delete;

    yaml_event_t* get() { return &event_; }
    [[nodiscard]] yaml_event_type_t type() const { return event_.type; }
    [[nodiscard]] std::size_t line() const { return event_.start_mark.line + 1; }
    [[nodiscard]] std::string_view text() const {
        return {reinterpret_cast<const char*>(event_.data.scalar.value), event_.data.scalar.length};
    }
    [[nodiscard]] bool is_plain() const {
        return event_.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    }
    [[nodiscard]] bool is_decorated() const {
        switch (event_.type) {
            case YAML_SCALAR_EVENT: return event_.data.scalar.anchor || event_.data.scalar.tag;
            case YAML_SEQUENCE_START_EVENT:
                return event_.data.sequence_start.anchor || event_.data.sequence_start.tag;
            case YAML_MAPPING_START_EVENT:
                return event_.data.mapping_start.anchor || event_.data.mapping_start.tag;
            default: return event_.type == YAML_ALIAS_EVENT;
        }
    }

  private:
    yaml_event_t event_{};
};

template <class Number>
std::optional<Number> number_of(std::string_view text) {
    if (text.starts_with('+')) text.remove_prefix(1);
    Number number{};
    auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return number;
}

json::value plain_value(std::string_view text) {
    if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") {
        return {};
    }
    if (text == "true" || text == "True" || text == "TRUE") return true;
    if (text == "false" || text == "False" || text == "FALSE") return false;
    if (auto number = number_of<std::int64_t>(text)) return *number;
    // "inf" and "nan" are numbers to from_chars, and words to YAML.
    const bool starts_like_one = text.find_first_of("0123456789") <= 2;
    if (starts_like_one) {
        if (auto number = number_of<double>(text)) return *number;
    }
    return json::value(text);
}

class YamlReader {
  public:
    explicit YamlReader(std::string_view text) {
        ready_ = yaml_parser_initialize(&parser_) == 1;
        if (!ready_) return;
        yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()),
                                     text.size());
    }
    ~YamlReader() {
        if (ready_) yaml_parser_delete(&parser_);
    }
    YamlReader(const YamlReader&) = delete;
    YamlReader& operator=(const YamlReader&) = delete;

    Result<json::value> read() {
        if (!ready_) return refuse(0, "no memory to read it");
        json::value document;
        for (;;) {
            YamlEvent event;
            if (auto failed = next(event)) return *failed;
            if (event.type() == YAML_STREAM_END_EVENT) return document;
            if (event.type() == YAML_STREAM_START_EVENT) continue;
            if (event.type() == YAML_DOCUMENT_END_EVENT) continue;
            if (event.type() != YAML_DOCUMENT_START_EVENT || seen_) {
                return refuse(event.line(), "only one document is accepted");
            }
            seen_ = true;
            YamlEvent root;
            if (auto failed = next(root)) return *failed;
            auto value = node(root, 0);
            if (!value) return value.error();
            document = std::move(*value);
        }
    }

  private:
    static Error refuse(std::size_t line, std::string_view why) {
        return {ErrorCode::invalid_argument,
                (line ? "line " + std::to_string(line) + ": " : std::string()) + std::string(why)};
    }

    std::optional<Error> next(YamlEvent& event) {
        if (yaml_parser_parse(&parser_, event.get()) == 1) return std::nullopt;
        const bool encoding = parser_.error == YAML_READER_ERROR;
        return refuse(encoding ? 0 : parser_.problem_mark.line + 1,
                      parser_.problem ? parser_.problem : "is no YAML");
    }

    Result<json::value> node(YamlEvent& event, int depth) {
        if (event.is_decorated())
            return refuse(event.line(), "anchors, aliases and tags are not accepted");
        if (depth == kMaxDepth) return refuse(event.line(), "more than 64 levels");
        switch (event.type()) {
            case YAML_SCALAR_EVENT:
                return event.is_plain() ? plain_value(event.text()) : json::value(event.text());
            case YAML_SEQUENCE_START_EVENT: return sequence(depth);
            case YAML_MAPPING_START_EVENT: return mapping(depth);
            default: return refuse(event.line(), "is no value");
        }
    }

    Result<json::value> sequence(int depth) {
        json::array array;
        for (;;) {
            YamlEvent event;
            if (auto failed = next(event)) return *failed;
            if (event.type() == YAML_SEQUENCE_END_EVENT) return json::value(std::move(array));
            auto item = node(event, depth + 1);
            if (!item) return item.error();
            array.push_back(std::move(*item));
        }
    }

    Result<json::value> mapping(int depth) {
        json::object object;
        for (;;) {
            YamlEvent key;
            if (auto failed = next(key)) return *failed;
            if (key.type() == YAML_MAPPING_END_EVENT) return json::value(std::move(object));
            if (key.type() != YAML_SCALAR_EVENT || key.is_decorated()) {
                return refuse(key.line(), "a key must be a text");
            }
            YamlEvent event;
            if (auto failed = next(event)) return *failed;
            auto value = node(event, depth + 1);
            if (!value) return value.error();
            if (!object.emplace(key.text(), std::move(*value)).second) {
                return refuse(key.line(), "a key is there twice");
            }
        }
    }

    yaml_parser_t parser_{};
    bool ready_ = false;
    bool seen_ = false;
};

}  // namespace

Result<json::value> parse_yaml(std::string_view text) {
    return YamlReader(text).read();
}

}  // namespace opensandbox::json
