#include "runtime/native/records/spawner_options.hpp"

#include "options/line_reader.hpp"
#include "options/setters.hpp"

namespace opensandbox::runtime::native {

namespace {

constexpr std::int64_t kMaxPool = 1000;
constexpr std::int64_t kMaxLayer = std::int64_t{1} << 44;
constexpr std::int64_t kMaxDescriptor = 1024;

constexpr options::Grammar kSpawnerGrammar{.unknown = "{word}: unknown option",
                                           .missing = "{name}: needs a value",
                                           .refused = "{name}: {rule}"};

std::vector<options::Option> spawner_table(SpawnerOptions& into) {
    using options::bound, options::number, options::text;
    return {
        bound({"--state-directory", 0, "DIR"}, text(into.state_directory)),
        bound({"--address-range", 0, "RANGE"}, text(into.address_range)),
        bound({"--address-range6", 0, "RANGE"}, text(into.address_range6)),
        bound({"--pool", 0, "SLOTS"}, number(into.pool_size, 0, kMaxPool)),
        bound({"--publish-host", 0, "ADDRESS"}, text(into.publish_host)),
        bound({"--layer", 0, "BYTES"}, number(into.layer_bytes, 0, kMaxLayer)),
        bound({"--runsc", 0, "FILE"}, text(into.runsc)),
        bound({"--rootless", 0, "0|1"}, number(into.rootless, 0, 1)),
        bound({"--report", 0, "DESCRIPTOR"}, number(into.report, 0, kMaxDescriptor)),
    };
}

}  // namespace

std::vector<std::string> SpawnerOptions::to_arguments() const {
    std::vector<std::string> out{"--state-directory",
                                 state_directory.string(),
                                 "--address-range",
                                 address_range,
                                 "--address-range6",
                                 address_range6,
                                 "--pool",
                                 std::to_string(pool_size),
                                 "--publish-host",
                                 publish_host,
                                 "--layer",
                                 std::to_string(layer_bytes)};
    if (!runsc.empty()) out.insert(out.end(), {"--runsc", runsc});
    if (rootless) out.insert(out.end(), {"--rootless", "1"});
    if (report >= 0) out.insert(out.end(), {"--report", std::to_string(report)});
    return out;
}

Result<SpawnerOptions> SpawnerOptions::parse(const std::vector<std::string>& arguments) {
    SpawnerOptions read;
    auto parsed = options::parse(spawner_table(read), kSpawnerGrammar, arguments);
    if (!parsed) return parsed.error();
    if (!read.state_directory.is_absolute()) {
        return invalid("--state-directory: an absolute path is needed");
    }
    return read;
}

std::filesystem::path SpawnerOptions::socket_path() const {
    return state_directory / "spawner.sock";
}

std::filesystem::path SpawnerOptions::own_directory() const {
    return state_directory / "spawner";
}

std::filesystem::path SpawnerOptions::sandboxes_directory() const {
    return state_directory / "sandboxes";
}

std::filesystem::path journal_directory(const std::filesystem::path& state_directory) {
    return state_directory / "spawner" / "journal";
}

}  // namespace opensandbox::runtime::native
