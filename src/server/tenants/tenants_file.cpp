#include "server/tenants/tenants_file.hpp"

#include "base/toml_text.hpp"
#include "server/config/sections.hpp"
#include "server/tenants/tenants.hpp"

#include <fstream>

namespace opensandbox::server {
namespace {

constexpr std::size_t kMaxFile = 4 << 20;
constexpr std::size_t kMaxKey = 1024;

/// One row; what is wrong with it goes to the reader.
class Row {
  public:
    Row(ConfigReader& reader, std::size_t index, TenantTable& table)
        : reader_(reader), at_("tenants[" + std::to_string(index) + "]"), table_(table) {}

    void read(const model::Quota& default_quota) {
        std::string name;
        std::string space;
        reader_.text(at_ + ".name", name);
        reader_.text(at_ + ".namespace", space);
        if (name.empty()) reader_.fail(at_ + ".name", "must not be empty");
        if (!is_namespace(space)) {
            reader_.fail(at_ + ".namespace",
                         "must be 1 to 253 lower-case letters, digits, '-' and '.'");
        }
        model::Quota quota = default_quota;
        read_quota(reader_, at_, quota);
        table_.quota_of_space.try_emplace(space, quota);
        read_keys(space);
    }

  private:
    void read_keys(const std::string& space) {
        std::string path = at_ + ".api_keys";
        const toml::node* node = reader_.node(path);
        const toml::array* keys = node ? node->as_array() : nullptr;
        if (!keys || keys->empty()) return reader_.fail(path, "must be a list of one key or more");
        for (const toml::node& entry : *keys) {
            auto key = entry.value_exact<std::string>();
            if (!key || key->empty() || key->size() > kMaxKey) {
                return reader_.fail(path, "must hold texts of 1 to 1024 characters");
            }
            if (!table_.space_of_key.emplace(key_digest(*key), space).second) {
                return reader_.fail(path, "must not hold a key that is there already");
            }
        }
    }

    ConfigReader& reader_;
    std::string at_;
    TenantTable& table_;
};

}  // namespace

Result<TenantTable> parse_tenants(std::string_view text, std::string_view source,
                                  const model::Quota& default_quota) {
    if (auto checked = check_toml_text(text, source); !checked) return checked.error();
    try {
        toml::table root = toml::parse(text, source);
        ConfigReader reader(root);
        TenantTable table;
        const toml::node* node = reader.node("tenants");
        const toml::array* rows = node ? node->as_array() : nullptr;
        if (node && !rows) reader.fail("tenants", "must be rows ([[tenants]])");
        for (std::size_t i = 0; rows && i < rows->size(); ++i)
            Row(reader, i, table).read(default_quota);
        if (!reader.errors().empty()) {
            return Error(ErrorCode::invalid_argument, std::string(source) + ": " + reader.errors());
        }
        return table;
    } catch (const toml::parse_error& problem) {
        return Error(ErrorCode::invalid_argument, std::string(source) + ":" +
                                                      std::to_string(problem.source().begin.line) +
                                                      ": " + std::string(problem.description()));
    }
}

Result<TenantTable> load_tenants(const std::filesystem::path& file,
                                 const model::Quota& default_quota) {
    std::ifstream in(file, std::ios::binary);
    if (!in) return Error(ErrorCode::not_found, "tenants: " + file.string() + ": cannot be read");
    std::string text(kMaxFile + 1, '\0');
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(in.gcount()));
    if (text.size() > kMaxFile) {
        return Error(ErrorCode::too_large, "tenants: " + file.string() + ": larger than 4 MiB");
    }
    return parse_tenants(text, file.string(), default_quota);
}

}  // namespace opensandbox::server
