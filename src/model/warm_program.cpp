#include "model/warm_program.hpp"

#include "json/document.hpp"

#include <algorithm>

namespace opensandbox::model {
namespace {

Error bad(std::string_view rule) {
    return {ErrorCode::invalid_argument, "warm programs: " + std::string(rule)};
}

bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/// "package.module": names that python can import without quoting anything.
bool is_module_name(std::string_view text) {
    if (text.empty() || text.size() > WarmProgram::kMaxName) return false;
    bool begins = true;
    for (char c : text) {
        const bool fits = is_letter(c) || (!begins && ((c >= '0' && c <= '9') || c == '.'));
        if (!fits) return false;
        begins = c == '.';
    }
    return !begins;
}

Result<WarmProgram> parse_one(const json::value& item) {
    if (!item.is_object()) return bad("must be a list of objects");
    const json::object& body = item.get_object();
    for (const auto& [name, value] : body) {
        if (name != "language" && name != "import") {
            return bad("unknown member " + std::string(name));
        }
    }
    auto language = json::get_string(body, "language");
    if (!language) return bad(language.error().message());
    auto imports = json::get_strings(body, "import");
    if (!imports) return bad(imports.error().message());
    WarmProgram program;
    program.language = language->value_or("");
    if (program.language != "python") return bad("language: must be python");
    program.imports = std::move(*imports).value_or(std::vector<std::string>());
    if (program.imports.size() > WarmProgram::kMaxImports) {
        return bad("import: at most " + std::to_string(WarmProgram::kMaxImports) + " modules");
    }
    for (const std::string& name : program.imports) {
        if (!is_module_name(name)) return bad("import: must be names of modules");
    }
    return program;
}

}  // namespace

Result<std::vector<WarmProgram>> parse_warm_programs(std::string_view text) {
    std::vector<WarmProgram> programs;
    if (text.empty()) return programs;
    if (text.size() > WarmProgram::kMaxText) {
        return bad("at most " + std::to_string(WarmProgram::kMaxText) + " bytes");
    }
    auto document = json::parse(text);
    if (!document) return bad(document.error().message());
    if (!document->is_array()) return bad("must be a list of objects");
    for (const json::value& item : document->get_array()) {
        auto program = parse_one(item);
        if (!program) return program.error();
        if (std::ranges::any_of(programs, [&](const WarmProgram& other) {
                return other.language == program->language;
            })) {
            return bad("language: " + program->language + " is there twice");
        }
        programs.push_back(std::move(*program));
    }
    return programs;
}

}  // namespace opensandbox::model
