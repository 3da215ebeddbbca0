#include "cli/help.hpp"

namespace opensandbox::cli {

namespace {

std::string_view count_text(Positional::Count count) {
    switch (count) {
        case Positional::Count::one: return "one";
        case Positional::Count::optional: return "optional";
        case Positional::Count::many: return "many";
        case Positional::Count::payload: return "payload";
        case Positional::Count::optional_payload: return "optional payload";
        case Positional::Count::any_number: return "any number";
    }
    return "one";
}

json::object describe(const Option& option) {
    json::object out;
    out["name"] = option.name;
    out["letter"] = option.letter ? json::value(std::string(1, option.letter)) : json::value();
    out["value"] = option.value.empty() ? json::value() : json::value(option.value);
    out["help"] = option.help;
    out["repeatable"] = option.repeatable;
    out["required"] = option.required;
    out["alias"] = option.alias.empty() ? json::value() : json::value(option.alias);
    return out;
}

json::array describe(const std::vector<Option>& options) {
    json::array out;
    for (const Option& option : options)
        out.emplace_back(describe(option));
    return out;
}

json::object describe(const Command& command) {
    json::array positionals;
    for (const Positional& positional : command.positionals) {
        positionals.emplace_back(json::object{{"name", positional.name},
                                              {"help", positional.help},
                                              {"count", count_text(positional.count)}});
    }
    json::array formats;
    for (Format format : command.formats)
        formats.emplace_back(to_string(format));
    json::array examples;
    for (const Example& example : command.examples) {
        examples.emplace_back(json::object{{"line", example.line}, {"says", example.says}});
    }
    json::object out;
    out["name"] = command.full_name();
    out["alias"] = command.alias.empty() ? json::value() : json::value(command.alias);
    out["summary"] = command.summary;
    out["arguments"] = std::move(positionals);
    out["options"] = describe(command.options);
    out["formats"] = std::move(formats);
    out["examples"] = std::move(examples);
    return out;
}

}  // namespace

json::object describe(const CommandTable& table) {
    json::array groups;
    for (const Group& group : table.groups) {
        groups.emplace_back(json::object{{"name", group.name}, {"summary", group.summary}});
    }
    json::array commands;
    for (const Command& command : table.commands) {
        if (!command.hidden) commands.emplace_back(describe(command));
    }
    json::object out;
    out["options"] = describe(global_options());
    out["groups"] = std::move(groups);
    out["commands"] = std::move(commands);
    return out;
}

}  // namespace opensandbox::cli
