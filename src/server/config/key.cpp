#include "server/config/key.hpp"

namespace opensandbox::server {
namespace {

std::string in_quotes(std::string_view text) {
    std::string out = "\"";
    for (char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        out += c;
    }
    return out + '"';
}

/// "[a, b]": elements between brackets.
template <class List, class Shown>
std::string listed(const List& list, std::string_view brackets, Shown shown) {
    std::string out(1, brackets.front());
    for (const auto& element : list) {
        if (out.size() > 1) out += ", ";
        out += shown(element);
    }
    return out + brackets.back();
}

}  // namespace

std::string toml_value(const std::string& text) {
    return in_quotes(text);
}

std::string toml_value(const std::filesystem::path& path) {
    return in_quotes(path.native());
}

std::string toml_value(const std::vector<std::string>& list) {
    return listed(list, "[]", in_quotes);
}

std::string toml_value(const std::vector<net::AddressBlock>& list) {
    return listed(list, "[]",
                  [](const net::AddressBlock& block) { return in_quotes(block.to_string()); });
}

std::string toml_value(const model::StringMap& map) {
    return listed(map, "{}", [](const auto& entry) {
        return in_quotes(entry.first) + " = " + in_quotes(entry.second);
    });
}

std::string toml_value(std::chrono::milliseconds time) {
    constexpr std::int64_t kSecond = 1000;
    std::string text = std::to_string(time.count() / kSecond);
    if (const auto rest = time.count() % kSecond; rest != 0)
        text += "." + std::to_string(kSecond + rest).substr(1);
    return text;
}

namespace keys {

void read_file(ConfigReader& reader, const Key& key, std::string_view path,
               std::filesystem::path& into) {
    std::filesystem::path file;
    if (!reader.path(path, file)) return;
    if (key.holds && !key.holds(file.native())) reader.fail(path, key.rule);
    into = std::move(file);
}

void read_texts(ConfigReader& reader, const Key&, std::string_view path,
                std::vector<std::string>& into) {
    reader.texts(path, into);
}

void read_flag(ConfigReader& reader, const Key&, std::string_view path, bool& into) {
    reader.flag(path, into);
}

void read_texts_table(ConfigReader& reader, const Key&, std::string_view path,
                      model::StringMap& into) {
    const toml::node* found = reader.node(path);
    if (!found) return;
    model::StringMap given;
    const toml::table* table = found->as_table();
    bool right = table != nullptr;
    if (right) {
        for (const auto& [key, value] : *table) {
            auto text = value.value_exact<std::string>();
            right = right && text.has_value();
            if (text) given.emplace_back(std::string(key.str()), *text);
        }
    }
    if (!right) return reader.fail(path, "must be a table of texts");
    into = std::move(given);
}

}  // namespace keys
}  // namespace opensandbox::server
