#include "egress/settings/help.hpp"

#include "egress/settings/table.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace opensandbox::egress {
namespace {

constexpr std::size_t kColumns = 100;
constexpr std::size_t kIndent = 16;

struct Paragraph {
    SettingTopic topic;
    std::string_view label;
    std::string_view end;  ///< said behind its settings
};

constexpr std::array kParagraphs{
    Paragraph{SettingTopic::policy, "policy",
              "; lists of operators in /var/egress/rules/{deny,allow,log_skip}.always"},
    Paragraph{SettingTopic::api, "API", ""},
    Paragraph{SettingTopic::names, "names", ""},
    Paragraph{SettingTopic::tunnels, "tunnels", ""},
    Paragraph{SettingTopic::interception, "interception", ""},
    Paragraph{SettingTopic::vault, "vault", ""},
    Paragraph{SettingTopic::reports, "reports", ""},
};

std::string listed(const Paragraph& paragraph) {
    std::string text;
    for (const Setting& setting : settings()) {
        if (setting.topic != paragraph.topic) continue;
        if (!text.empty()) text += ", ";
        text += setting.name;
        if (!setting.standard.empty()) text += "=" + std::string(setting.standard);
        if (!setting.note.empty()) text += " (" + std::string(setting.note) + ")";
    }
    return text + std::string(paragraph.end);
}

/// Appends the words of `text`, in lines that leave the label's column free.
void append_wrapped(std::string_view label, std::string_view text, std::string& to) {
    std::string line = "  " + std::string(label);
    line.resize(kIndent, ' ');
    bool first = true;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(' '), text.size());
        if (!first && line.size() + 1 + end > kColumns) {
            to += line + '\n';
            line.assign(kIndent, ' ');
            first = true;
        }
        if (!first) line += ' ';
        line += text.substr(0, end);
        first = false;
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    to += line + '\n';
}

}  // namespace

std::string settings_help() {
    std::string help;
    for (const Paragraph& paragraph : kParagraphs)
        append_wrapped(paragraph.label, listed(paragraph), help);
    return help;
}

}  // namespace opensandbox::egress
