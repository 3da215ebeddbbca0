#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <toml++/toml.h>
#include <utility>
#include <vector>

namespace opensandbox::server {

/// Reads keys of one document and gathers what is wrong with them.
class ConfigReader {
  public:
    explicit ConfigReader(const toml::table& root) : root_(root) {}

    [[nodiscard]] const toml::node* node(std::string_view path) const {
        return root_.at_path(path).node();
    }

    void text(std::string_view path, std::string& into) {
        const toml::node* found = node(path);
        if (!found) return;
        if (auto value = found->value_exact<std::string>()) {
            into = *value;
        } else {
            fail(path, "must be text");
        }
    }

    /// A file; `~/` at its start is the home directory. Empty when it is not given.
    std::filesystem::path path(std::string_view key) {
        std::string given;
        text(key, given);
        const char* home = std::getenv("HOME");
        if (given.starts_with("~/") && home) given = home + given.substr(1);
        return given;
    }

    void number(std::string_view path, std::int64_t minimum, std::int64_t maximum,
                std::int64_t& into) {
        const toml::node* found = node(path);
        if (!found) return;
        auto value = found->value_exact<std::int64_t>();
        if (!value || *value < minimum || *value > maximum) {
            fail(path, "must be a whole number from " + std::to_string(minimum) +
                           (maximum == INT64_MAX ? " up" : " to " + std::to_string(maximum)));
        } else {
            into = *value;
        }
    }

    bool flag(std::string_view path, bool fallback) {
        const toml::node* found = node(path);
        if (!found) return fallback;
        if (auto value = found->value_exact<bool>()) return *value;
        fail(path, "must be true or false");
        return fallback;
    }

    void texts(std::string_view path, std::vector<std::string>& into) {
        const toml::node* found = node(path);
        if (!found) return;
        const toml::array* list = found->as_array();
        std::vector<std::string> given;
        bool right = list != nullptr;
        for (std::size_t i = 0; right && i < list->size(); ++i) {
            auto text = list->get(i)->value_exact<std::string>();
            right = text.has_value();
            if (right) given.push_back(*text);
        }
        if (right) {
            into = std::move(given);
        } else {
            fail(path, "must be a list of texts");
        }
    }

    void fail(std::string_view path, std::string_view rule) {
        errors_ += (errors_.empty() ? "" : "\n") + std::string(path) + ": " + std::string(rule);
    }

    [[nodiscard]] const std::string& errors() const { return errors_; }

  private:
    const toml::table& root_;
    std::string errors_;
};

}  // namespace opensandbox::server
