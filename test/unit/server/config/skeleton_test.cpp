#include "server/config/config.hpp"
#include "server/config/sections.hpp"
#include "support/catch_result.hpp"

#include <catch2/catch.hpp>

#include <cstddef>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

using namespace opensandbox;
using namespace opensandbox::server;

namespace {

constexpr unsigned char kPage[] = {
#include "test/configuration.md.inc"
};

std::string path_of(const Section& section, const Key& key) {
    return std::string(section.name) + "." + std::string(key.name);
}

/// The skeleton with its headers and settings turned on, these where `wanted` says so.
class Uncommented {
  public:
    template <class Wanted>
    explicit Uncommented(Wanted wanted) {
        std::istringstream lines(config_skeleton());
        for (std::string line; std::getline(lines, line);) {
            const std::string bare = line.starts_with("#") ? without_mark(line) : line;
            if (enter(bare)) {
                text_ += bare + "\n";
            } else if (const Key* key = key_of(bare); key && line != bare) {
                keys_.push_back(path_of(*section_, *key));
                if (wanted(*key)) text_ += bare + "\n";
            }
        }
    }

    [[nodiscard]] const std::string& text() const { return text_; }
    /// All of them, in their order.
    [[nodiscard]] const std::vector<std::string>& keys() const { return keys_; }
    [[nodiscard]] const std::vector<std::string>& sections() const { return sections_; }

  private:
    static std::string without_mark(const std::string& line) {
        const std::size_t begin = line.find_first_not_of(' ', 1);
        return begin == std::string::npos ? std::string() : line.substr(begin);
    }

    bool enter(const std::string& line) {
        for (const Section* section : config_sections()) {
            if (line != "[" + std::string(section->name) + "]") continue;
            section_ = section;
            sections_.emplace_back(section->name);
            return true;
        }
        return false;
    }

    [[nodiscard]] const Key* key_of(const std::string& line) const {
        if (!section_) return nullptr;
        for (const Key& key : section_->keys) {
            if (line.starts_with(std::string(key.name) + " = ")) return &key;
        }
        return nullptr;
    }

    const Section* section_ = nullptr;
    std::string text_;
    std::vector<std::string> keys_;
    std::vector<std::string> sections_;
};

}  // namespace

TEST_CASE("skeleton: every key of the table stands in it once, in the order of the table") {
    std::vector<std::string> keys;
    std::vector<std::string> sections;
    for (const Section* section : config_sections()) {
        sections.emplace_back(section->name);
        for (const Key& key : section->keys)
            keys.push_back(path_of(*section, key));
    }
    const Uncommented all([](const Key&) { return true; });
    CHECK(all.keys() == keys);
    CHECK(all.sections() == sections);
    CHECK(sections.front() == "server");
    CHECK(sections.back() == "kubernetes");
}

TEST_CASE("skeleton: what it says to be a default is one") {
    const Uncommented defaults([](const Key& key) { return key.example.empty(); });
    auto config = parse_config(defaults.text(), "skeleton");
    REQUIRE(config.has_value());
    auto nothing = parse_config("", "nothing");
    REQUIRE(nothing.has_value());
    for (const Section* section : config_sections()) {
        for (const Key& key : section->keys) {
            if (!key.shown) continue;
            INFO(path_of(*section, key));
            CHECK(key.shown(*config) == key.shown(Config()));
            CHECK(key.shown(*nothing) == key.shown(Config()));
        }
    }
}

TEST_CASE("skeleton: its examples are read, each into its member") {
    const Uncommented all([](const Key&) { return true; });
    auto config = parse_config(all.text(), "skeleton");
    REQUIRE(config.has_value());
    for (const Section* section : config_sections()) {
        for (const Key& key : section->keys) {
            if (!key.shown || key.example.empty()) continue;
            INFO(path_of(*section, key));
            CHECK(key.shown(*config) != key.shown(Config()));
        }
    }
    CHECK(config->tenants.enabled);
    CHECK(config->warm.images.size() == 1);
    CHECK(config->sidecar.environment.size() == kEgressEnvironmentSection.keys.size());
}

TEST_CASE("config: every key of the table is refused by its name where its value makes no sense") {
    const auto refused = [](const std::string& runtime, const Section& section, const Key& key) {
        const std::string header = "\n[" + std::string(section.name) + "]\n";
        auto config =
            parse_config(runtime + header + std::string(key.name) + " = 1979-05-27\n", "test");
        return !config && config.error().message().find(path_of(section, key) + ": must ") !=
                              std::string::npos;
    };
    for (const Section* section : config_sections()) {
        for (const Key& key : section->keys) {
            INFO(path_of(*section, key));
            CHECK((refused("", *section, key) ||
                   refused("[runtime]\ntype = \"docker\"", *section, key) ||
                   refused("[runtime]\ntype = \"kubernetes\"", *section, key)));
        }
    }
}

TEST_CASE("skeleton: the manual shows it as it is") {
    const std::string_view page(reinterpret_cast<const char*>(kPage), sizeof kPage);
    const std::string_view fence = "\n```toml\n";
    const std::size_t begin = page.find(fence);
    REQUIRE(begin != std::string_view::npos);
    const std::string_view shown = page.substr(begin + fence.size());
    // `opensandbox init-config` writes what belongs there.
    CHECK(shown.substr(0, shown.find("```")) == config_skeleton());
}
