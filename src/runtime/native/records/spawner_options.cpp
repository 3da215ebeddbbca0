#include "runtime/native/records/spawner_options.hpp"

#include <charconv>
#include <type_traits>

namespace opensandbox::runtime::native {

namespace {

constexpr std::int64_t max_layer = std::int64_t{1} << 44;

Status read_number(std::string_view option, std::string_view text, std::int64_t max, auto& into) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < 0 || value > max) {
        return Error(ErrorCode::invalid_argument,
                     std::string(option) + ": a number from 0 to " + std::to_string(max));
    }
    into = static_cast<std::remove_reference_t<decltype(into)>>(value);
    return {};
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
    SpawnerOptions options;
    for (std::size_t i = 0; i < arguments.size(); i += 2) {
        const std::string& name = arguments[i];
        if (i + 1 == arguments.size()) {
            return Error(ErrorCode::invalid_argument, name + ": needs a value");
        }
        const std::string& value = arguments[i + 1];
        Status status;
        if (name == "--state-directory") {
            options.state_directory = value;
        } else if (name == "--address-range") {
            options.address_range = value;
        } else if (name == "--address-range6") {
            options.address_range6 = value;
        } else if (name == "--pool") {
            status = read_number(name, value, 1000, options.pool_size);
        } else if (name == "--publish-host") {
            options.publish_host = value;
        } else if (name == "--layer") {
            status = read_number(name, value, max_layer, options.layer_bytes);
        } else if (name == "--runsc") {
            options.runsc = value;
        } else if (name == "--rootless") {
            status = read_number(name, value, 1, options.rootless);
        } else if (name == "--report") {
            status = read_number(name, value, 1024, options.report);
        } else {
            status = Error(ErrorCode::invalid_argument, name + ": unknown option");
        }
        if (!status) return status.error();
    }
    if (!options.state_directory.is_absolute()) {
        return Error(ErrorCode::invalid_argument, "--state-directory: an absolute path is needed");
    }
    return options;
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
