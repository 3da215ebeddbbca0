#pragma once

#include "base/clock.hpp"
#include "base/error.hpp"
#include "json/document.hpp"
#include "runtime/docker/engine/image.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::runtime::docker {

/// Reads members of the engine's documents. What is absent or null has its empty value; the first
/// member of a wrong type is remembered as the reason why the document is no answer. Pure.
class DocumentReader {
  public:
    std::string text(const json::object& from, std::string_view name);
    std::int64_t integer(const json::object& from, std::string_view name);
    /// Negative numbers count as 0.
    std::uint64_t count(const json::object& from, std::string_view name);
    bool flag(const json::object& from, std::string_view name);
    /// Also a single string, as old images have.
    std::vector<std::string> strings(const json::object& from, std::string_view name);
    StringMap string_map(const json::object& from, std::string_view name);
    /// RFC 3339; empty for the engine's "never", year 1.
    std::optional<Timestamp> time(const json::object& from, std::string_view name);
    /// The member, or an empty object.
    const json::object& object(const json::object& from, std::string_view name);
    /// The objects of an array, or of none.
    std::vector<const json::object*> objects(const json::object& from, std::string_view name);
    std::vector<const json::object*> objects(const json::value& list, std::string_view name);
    /// A text that must be there.
    std::string required(const json::object& from, std::string_view name);
    /// The whole document as an object, or an empty one.
    const json::object& whole(const json::value& document);

    /// `bad_gateway` with the first thing that was wrong.
    [[nodiscard]] Status status() const;

  private:
    template <class T>
    T keep(Result<std::optional<T>> read);
    void blame(std::string reason);

    std::optional<std::string> reason_;
};

}  // namespace opensandbox::runtime::docker
