#pragma once

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <toml++/toml.h>
#include <utility>
#include <vector>

namespace opensandbox::server {

/// Reads keys of one document and gathers what is wrong with them. A key that is absent or wrong
/// leaves `into` as it is and gives false.
class ConfigReader {
  public:
    explicit ConfigReader(const toml::table& root) : root_(root) {}

    [[nodiscard]] const toml::node* node(std::string_view path) const {
        return root_.at_path(path).node();
    }

    bool text(std::string_view path, std::string& into) {
        const toml::node* found = node(path);
        if (!found) return false;
        auto value = found->value_exact<std::string>();
        if (!value) return refuse(path, "must be text");
        into = *value;
        return true;
    }

    /// A file; `~/` at its start is the home directory.
    bool path(std::string_view key, std::filesystem::path& into) {
        std::string given;
        if (!text(key, given)) return false;
        const char* home = std::getenv("HOME");
        if (given.starts_with("~/") && home) given = home + given.substr(1);
        into = given;
        return true;
    }

    bool number(std::string_view path, std::int64_t minimum, std::int64_t maximum,
                std::int64_t& into) {
        const toml::node* found = node(path);
        if (!found) return false;
        auto value = found->value_exact<std::int64_t>();
        if (!value || *value < minimum || *value > maximum) {
            return refuse(path,
                          "must be a whole number from " + std::to_string(minimum) +
                              (maximum == INT64_MAX ? " up" : " to " + std::to_string(maximum)));
        }
        into = *value;
        return true;
    }

    /// Whole seconds or a fraction of them.
    bool seconds(std::string_view path, std::chrono::milliseconds& into) {
        constexpr double kMilliseconds = 1000;
        constexpr double kLongest = 86400;
        const toml::node* found = node(path);
        if (!found) return false;
        auto value = found->value<double>();
        if (!value || *value <= 0 || *value > kLongest)
            return refuse(path, "must be a number of seconds above 0");
        into = std::chrono::milliseconds(static_cast<std::int64_t>(*value * kMilliseconds));
        return true;
    }

    bool flag(std::string_view path, bool& into) {
        const toml::node* found = node(path);
        if (!found) return false;
        auto value = found->value_exact<bool>();
        if (!value) return refuse(path, "must be true or false");
        into = *value;
        return true;
    }

    bool texts(std::string_view path, std::vector<std::string>& into) {
        const toml::node* found = node(path);
        if (!found) return false;
        const toml::array* list = found->as_array();
        std::vector<std::string> given;
        bool right = list != nullptr;
        for (std::size_t i = 0; right && i < list->size(); ++i) {
            auto text = list->get(i)->value_exact<std::string>();
            right = text.has_value();
            if (right) given.push_back(*text);
        }
        if (!right) return refuse(path, "must be a list of texts");
        into = std::move(given);
        return true;
    }

    void fail(std::string_view path, std::string_view rule) {
        errors_ += (errors_.empty() ? "" : "\n") + std::string(path) + ": " + std::string(rule);
    }

    [[nodiscard]] const std::string& errors() const { return errors_; }

  private:
    bool refuse(std::string_view path, std::string_view rule) {
        fail(path, rule);
        return false;
    }

    const toml::table& root_;
    std::string errors_;
};

}  // namespace opensandbox::server
