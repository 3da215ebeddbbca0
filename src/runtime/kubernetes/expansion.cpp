#include "runtime/kubernetes/expansion.hpp"

namespace opensandbox::runtime::kubernetes {

std::string without_expansion(std::string_view plain) {
    std::string text;
    text.reserve(plain.size());
    for (std::size_t i = 0; i < plain.size(); ++i) {
        text += plain[i];
        const char next = i + 1 < plain.size() ? plain[i + 1] : '\0';
        if (plain[i] == '$' && (next == '$' || next == '(')) text += '$';
    }
    return text;
}

std::string expanded(std::string_view text) {
    std::string plain;
    plain.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        plain += text[i];
        if (text[i] == '$' && i + 1 < text.size() && text[i + 1] == '$') ++i;
    }
    return plain;
}

}  // namespace opensandbox::runtime::kubernetes
