#include "server/config/sections.hpp"

#include <algorithm>

namespace opensandbox::server {
namespace {

constexpr std::size_t kWidth = 100;

/// A paragraph a line of `text`, wrapped; a line that begins with a space stays as it is.
void append_comment(std::string& out, std::string_view prefix, std::string_view text) {
    while (!text.empty()) {
        std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        const std::size_t room = kWidth - prefix.size();
        while (line.size() > room && !line.starts_with(' ')) {
            const std::size_t end = line.rfind(' ', room);
            if (end == std::string_view::npos) break;
            out.append(prefix).append(line.substr(0, end)).append("\n");
            line.remove_prefix(end + 1);
        }
        out.append(prefix).append(line).append("\n");
    }
}

void append_section(std::string& out, const Section& section) {
    const Config defaults;
    const std::string header = "[" + std::string(section.name) + "]\n";
    // Beneath a header that is commented out its keys are indented: they go with it.
    const std::string_view prefix = section.off ? "#   " : "# ";
    const std::string help = section.off ? "#   # " : "# ";
    out += "\n";
    if (!section.off) out += header;
    append_comment(out, "# ", section.comment);
    if (section.off) out += "# " + header;
    for (const Key& key : section.keys) {
        append_comment(out, help, key.help);
        out.append(prefix).append(key.name).append(" = ");
        out += key.example.empty() ? key.shown(defaults) : std::string(key.example);
        out += "\n";
    }
}

}  // namespace

std::string config_skeleton() {
    std::string out;
    append_comment(out, "# ",
                   "Configuration of `opensandbox serve`. Every line is optional; what is "
                   "commented out shows the default, or an example where there is none. Read from "
                   "--config, else from $SANDBOX_CONFIG_PATH, else from ~/.sandbox.toml.");
    for (const Section* section : config_sections())
        append_section(out, *section);
    return out;
}

}  // namespace opensandbox::server
