#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace opensandbox::http {

/// Without the spaces and tabs at both ends.
std::string_view trim(std::string_view text);

/// ASCII case-insensitive equality, as header names compare.
bool equal_ignoring_case(std::string_view a, std::string_view b);

/// Header fields in the order received, repeated ones kept apart.
class Fields {
  public:
    using Entry = std::pair<std::string, std::string>;

    Fields() = default;
    Fields(std::initializer_list<Entry> entries) : entries_(entries) {}

    void add(std::string name, std::string value);
    /// Replaces every field of that name by one.
    void set(std::string_view name, std::string value);
    /// Removes every field of that name; returns how many there were.
    std::size_t erase(std::string_view name);
    /// The first value.
    [[nodiscard]] std::optional<std::string_view> get(std::string_view name) const;
    [[nodiscard]] bool has(std::string_view name) const { return get(name).has_value(); }
    /// Whether the comma-separated lists of all fields of that name hold the token (case ignored).
    [[nodiscard]] bool has_token(std::string_view name, std::string_view token) const;
    [[nodiscard]] std::size_t size() const { return entries_.size(); }
    [[nodiscard]] auto begin() const { return entries_.begin(); }
    [[nodiscard]] auto end() const { return entries_.end(); }

  private:
    std::vector<Entry> entries_;
};

}  // namespace opensandbox::http
