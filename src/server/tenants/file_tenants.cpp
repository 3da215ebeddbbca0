#include "server/tenants/file_tenants.hpp"

#include "base/log.hpp"
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

FileTenants::FileTenants(asio::any_io_executor executor, std::filesystem::path file,
                         model::Quota default_quota)
    : executor_(std::move(executor)), file_(std::move(file)), default_quota_(default_quota) {}

FileTenants::Mark FileTenants::look() const {
    struct stat status{};
    if (::stat(file_.c_str(), &status) != 0) return {};
    return {true, status.st_ino, status.st_size,
            status.st_mtim.tv_sec * 1'000'000'000LL + status.st_mtim.tv_nsec};
}

Status FileTenants::load() {
    seen_ = look();
    auto table = load_tenants(file_, default_quota_);
    if (!table) return table.error();
    table_ = std::move(table.value());
    return {};
}

void FileTenants::watch(std::chrono::milliseconds interval) {
    net::spawn(executor_, keep_watching(weak_from_this(), interval), "tenants file");
}

void FileTenants::stop() {
    stopped_ = true;
}

Awaitable<void> FileTenants::keep_watching(std::weak_ptr<FileTenants> weak,
                                           std::chrono::milliseconds interval) {
    while (true) {
        co_await net::sleep_for(interval);
        auto self = weak.lock();
        if (!self || self->stopped_) co_return;
        // A stat of one local file; the reading itself happens when somebody has changed it.
        if (self->look() != self->seen_) self->reload();
    }
}

void FileTenants::reload() {
    seen_ = look();
    if (!seen_.there) {
        table_ = TenantTable();
        log::warn("tenants: the file is gone; no key is valid", {{"file", file_.string()}});
        return;
    }
    auto table = load_tenants(file_, default_quota_);
    if (!table) {
        log::error("tenants: the file cannot be used; what it said before stays",
                   {{"error", table.error().message()}});
        return;
    }
    table_ = std::move(table.value());
    log::info("tenants: the file was read again",
              {{"keys", table_.space_of_key.size()}, {"tenants", table_.quota_of_space.size()}});
}

Awaitable<Result<std::string>> FileTenants::authenticate(std::string key) {
    auto found = table_.space_of_key.find(key_digest(key));
    if (found != table_.space_of_key.end()) co_return found->second;
    co_return Error(ErrorCode::unauthenticated, "no tenant has this key");
}

model::Quota FileTenants::quota(std::string_view space) const {
    auto found = table_.quota_of_space.find(space);
    return found == table_.quota_of_space.end() ? default_quota_ : found->second;
}

}  // namespace opensandbox::server
