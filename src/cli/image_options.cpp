#include "cli/image_options.hpp"

#include "json/document.hpp"

#include <charconv>

namespace opensandbox::cli {

namespace {

/// A JSON array of words, or one word.
std::optional<std::vector<std::string>> read_words(Arguments& arguments, std::string_view option) {
    auto text = arguments.get(option);
    if (!text) return std::nullopt;
    if (!text->starts_with('[')) return std::vector<std::string>{*text};
    std::vector<std::string> words;
    auto document = json::parse(*text);
    const bool is_array = document && document->is_array();
    for (const json::value& word : is_array ? document->get_array() : json::array()) {
        if (word.is_string()) words.emplace_back(word.get_string());
    }
    if (!is_array || words.size() != document->get_array().size()) {
        arguments.refuse(option, *text, "a JSON array of strings, or one word");
    }
    return words;
}

std::optional<std::map<std::string, std::string>> read_pairs(Arguments& arguments,
                                                             std::string_view option) {
    auto pairs = arguments.pairs(option);
    if (pairs.empty()) return std::nullopt;
    std::map<std::string, std::string> map;
    for (auto& [name, value] : pairs)
        map[name] = value;
    return map;
}

bool is_port(std::string_view text) {
    for (std::string_view protocol : {"/tcp", "/udp", "/sctp"}) {
        if (text.ends_with(protocol)) {
            text.remove_suffix(protocol.size());
            break;
        }
    }
    unsigned number = 0;
    auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
    return failed == std::errc() && end == text.data() + text.size() && number >= 1 &&
           number <= 65535;
}

}  // namespace

const std::vector<Option>& image_config_options() {
    static const std::vector<Option> options{
        {"--env", 'e', "KEY=VALUE", "Variable to set in the image.", true},
        {"--user", 'u', "USER", "User of its processes: UID, NAME, or either with :GROUP."},
        {"--workdir", 'w', "PATH", "Working directory."},
        {"--entrypoint", 0, "JSON", "Entrypoint: a JSON array, or one word."},
        {"--cmd", 0, "JSON", "Default arguments: a JSON array, or one word."},
        {"--label", 'l', "KEY=VALUE", "Label; those given replace all.", true},
        {"--expose", 0, "PORT", "Port to declare, such as 80/tcp; those given replace all.", true},
    };
    return options;
}

sdk::ImageConfigChange read_image_config(Arguments& arguments) {
    sdk::ImageConfigChange change;
    change.environment = read_pairs(arguments, "--env");
    change.user = arguments.get("--user");
    change.working_directory = arguments.get("--workdir");
    change.entrypoint = read_words(arguments, "--entrypoint");
    change.cmd = read_words(arguments, "--cmd");
    change.labels = read_pairs(arguments, "--label");
    if (auto ports = arguments.all("--expose"); !ports.empty()) {
        for (const auto& port : ports) {
            if (!is_port(port)) {
                arguments.refuse("--expose", port,
                                 "a port from 1 to 65535, perhaps with /tcp or /udp");
            }
        }
        change.exposed_ports = std::move(ports);
    }
    return change;
}

}  // namespace opensandbox::cli
