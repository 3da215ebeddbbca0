#include "json/document.hpp"
#include "model/field_rule.hpp"
#include "model/json_body.hpp"
#include "server/api/images.hpp"

#include <array>

namespace opensandbox::server {
namespace {

using model::FieldKind;
using model::FieldRule;

constexpr FieldRule name(std::string_view field) {
    return {.name = field, .required = true, .nullable = false, .minimum = 1, .maximum = 1024};
}

constexpr std::array kConfig{
    FieldRule{.name = "env", .kind = FieldKind::text_map},
    FieldRule{.name = "user"},
    FieldRule{.name = "workingDir"},
    FieldRule{.name = "entrypoint", .kind = FieldKind::text_list},
    FieldRule{.name = "cmd", .kind = FieldKind::text_list},
    FieldRule{.name = "labels", .kind = FieldKind::text_map},
    FieldRule{.name = "exposedPorts", .kind = FieldKind::text_list},
};
constexpr FieldRule kConfigRule{
    .name = "config", .kind = FieldKind::object, .members = kConfig, .closed = true};
constexpr std::array kSnapshotImage{name("reference"), kConfigRule};
constexpr std::array kImageTag{name("source"), name("reference"), kConfigRule};

image::ConfigChange read_change(const json::object& config) {
    image::ConfigChange change;
    change.env = model::read_map(config, "env");
    change.user = model::read_text(config, "user");
    change.working_directory = model::read_text(config, "workingDir");
    change.entrypoint = model::read_list(config, "entrypoint");
    change.cmd = model::read_list(config, "cmd");
    if (auto labels = model::read_map(config, "labels")) {
        change.labels.emplace(labels->begin(), labels->end());
    }
    change.exposed_ports = model::read_list(config, "exposedPorts");
    return change;
}

std::variant<NamedImage, model::FieldErrors> parse(std::string_view body,
                                                   std::span<const FieldRule> rules) {
    json::value document;
    model::FieldErrors errors = model::parse_body(body, document);
    if (errors.empty()) {
        model::check_object(document, rules, model::Location{std::string("body")}, errors);
    }
    if (!errors.empty()) return errors;
    const json::object& given = document.get_object();
    NamedImage named;
    named.source = model::read_text(given, "source").value_or("");
    named.reference = model::read_text(given, "reference").value_or("");
    if (const json::value* config = model::find_field(given, "config")) {
        named.change = read_change(config->get_object());
    }
    return named;
}

}  // namespace

std::variant<NamedImage, model::FieldErrors> parse_snapshot_image(std::string_view body) {
    return parse(body, kSnapshotImage);
}

std::variant<NamedImage, model::FieldErrors> parse_image_tag(std::string_view body) {
    return parse(body, kImageTag);
}

}  // namespace opensandbox::server
