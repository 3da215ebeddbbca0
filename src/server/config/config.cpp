#include "server/config/config.hpp"

#include "base/toml_text.hpp"
#include "server/config/sections.hpp"

#include <cstdlib>
#include <fstream>
#include <iterator>

namespace opensandbox::server {
namespace {

constexpr std::size_t kMaxFile = 1 << 20;

/// Sections must be tables, or their keys would be skipped without a word.
void check_tables(ConfigReader& reader) {
    const auto check = [&](std::string_view name) {
        const toml::node* found = reader.node(name);
        if (found && !found->is_table())
            reader.fail(name, "must be a table ([" + std::string(name) + "])");
    };
    for (const Section* section : config_sections()) {
        if (section->name.find('.') == std::string_view::npos) check(section->name);
    }
}

void read_sections(ConfigReader& reader, Config& config) {
    for (const Section* section : config_sections()) {
        read_keys(reader, section->name, section->keys, config);
        if (section->read) section->read(reader, config);
    }
    for (const Section* section : config_sections()) {
        if (section->check) section->check(reader, config);
    }
}

}  // namespace

Result<Config> parse_config(std::string_view text, std::string_view source) {
    if (auto checked = check_toml_text(text, source); !checked) return checked.error();
    try {
        toml::table root = toml::parse(text, source);
        ConfigReader reader(root);
        Config config;
        check_tables(reader);
        read_sections(reader, config);
        if (!reader.errors().empty()) return Error(ErrorCode::invalid_argument, reader.errors());
        return config;
    } catch (const toml::parse_error& problem) {
        std::string where = std::string(source) + ":" +
                            std::to_string(problem.source().begin.line) + ":" +
                            std::to_string(problem.source().begin.column);
        return Error(ErrorCode::invalid_argument,
                     where + ": " + std::string(problem.description()));
    }
}

Result<Config> load_config(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    if (!in)
        return Error(ErrorCode::not_found, "configuration " + file.string() + ": cannot be read");
    std::string text(kMaxFile + 1, '\0');
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(in.gcount()));
    if (text.size() > kMaxFile) {
        return Error(ErrorCode::too_large,
                     "configuration " + file.string() + ": larger than 1 MiB");
    }
    return parse_config(text, file.string());
}

std::filesystem::path find_config(const std::string& flag) {
    if (!flag.empty()) return flag;
    if (const char* path = std::getenv("SANDBOX_CONFIG_PATH"); path && *path) return path;
    const char* home = std::getenv("HOME");
    if (!home || !*home) return {};
    std::filesystem::path usual = std::filesystem::path(home) / ".sandbox.toml";
    std::error_code ec;
    return std::filesystem::exists(usual, ec) ? usual : std::filesystem::path();
}

}  // namespace opensandbox::server
