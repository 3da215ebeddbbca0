#include "server/config/config.hpp"

#include "base/toml_text.hpp"
#include "server/config/sections.hpp"

#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace opensandbox::server {
namespace {

constexpr std::size_t kMaxFile = 1 << 20;

/// In this order: [tenants] looks at what [server] said, [runtime] at [native], [docker]
/// and [egress].
constexpr std::array kSections{read_server,   read_log,          read_native,
                               read_registry, read_docker,       read_egress_environment,
                               read_storage,  read_runtime,      read_store,
                               read_ingress,  read_renew_intent, read_otel,
                               read_tenants,  read_quotas};

/// Sections must be tables, or their keys would be skipped without a word.
void check_sections(ConfigReader& reader) {
    for (std::string_view section :
         {"server", "proxy", "log", "runtime", "docker", "storage", "store", "egress", "ingress",
          "renew_intent", "otel", "secure_runtime", "tenants", "quotas", "kubernetes", "native",
          "registry", "metrics"}) {
        const toml::node* found = reader.node(section);
        if (found && !found->is_table())
            reader.fail(section, "must be a table ([" + std::string(section) + "])");
    }
}

}  // namespace

Result<Config> parse_config(std::string_view text, std::string_view source) {
    if (auto checked = check_toml_text(text, source); !checked) return checked.error();
    try {
        toml::table root = toml::parse(text, source);
        ConfigReader reader(root);
        Config config;
        check_sections(reader);
        for (auto* read : kSections)
            read(reader, config);
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
