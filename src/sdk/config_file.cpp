#include "sdk/config_file.hpp"

#include "base/toml_text.hpp"
#include "sdk/transport.hpp"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <toml++/toml.h>

namespace opensandbox::sdk {

namespace {

/// Reads the keys of one table and remembers the first that has the wrong type.
class TableReader {
  public:
    TableReader(const toml::table& root, std::string_view section)
        : section_(section), table_(root[section].as_table()) {}

    template <class T>
    std::optional<T> get(std::string_view key, std::string_view expected) {
        const toml::node* node = table_ ? table_->get(key) : nullptr;
        if (!node) return std::nullopt;
        auto value = node->value_exact<T>();
        if (!value && problem_.empty()) {
            problem_ = std::string(section_) + "." + std::string(key) + ": must be " +
                       std::string(expected);
        }
        return value;
    }
    std::optional<std::string> string(std::string_view key) {
        return get<std::string>(key, "a string");
    }
    [[nodiscard]] const std::string& problem() const { return problem_; }

  private:
    std::string_view section_;
    const toml::table* table_;
    std::string problem_;
};

}  // namespace

std::filesystem::path default_config_path() {
    const char* home = std::getenv("HOME");
    return std::filesystem::path(home ? home : "/") / ".opensandbox" / "config.toml";
}

Result<ConfigFile> parse_config_file(std::string_view text, std::string_view path) {
    if (auto checked = check_toml_text(text, path); !checked) return to_public(checked.error());
    toml::table root;
    try {
        root = toml::parse(text, path);
    } catch (const toml::parse_error& failure) {
        return Error(ErrorCode::invalid_argument, std::string(path) + ", line " +
                                                      std::to_string(failure.source().begin.line) +
                                                      ": " + std::string(failure.description()));
    }
    ConfigFile file;
    TableReader connection(root, "connection");
    file.api_key = connection.string("api_key");
    file.domain = connection.string("domain");
    file.protocol = connection.string("protocol");
    file.request_timeout = connection.get<std::int64_t>("request_timeout", "an integer (seconds)");
    file.use_server_proxy = connection.get<bool>("use_server_proxy", "true or false");
    TableReader output(root, "output");
    file.color = output.get<bool>("color", "true or false");
    TableReader defaults(root, "defaults");
    file.default_image = defaults.string("image");
    file.default_timeout = defaults.string("timeout");
    for (const TableReader* reader : {&connection, &output, &defaults}) {
        if (!reader->problem().empty()) {
            return Error(ErrorCode::invalid_argument, std::string(path) + ": " + reader->problem());
        }
    }
    return file;
}

Result<ConfigFile> load_config_file(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) {
        std::error_code ignored;
        if (std::filesystem::exists(path, ignored)) {
            return Error(ErrorCode::io, "cannot read the configuration file " + path.string());
        }
        return Error(ErrorCode::not_found, "there is no configuration file " + path.string());
    }
    std::ostringstream text;
    text << in.rdbuf();
    return parse_config_file(text.str(), path.string());
}

}  // namespace opensandbox::sdk
