#pragma once

#include "json/fields.hpp"
#include "mcp/schema.hpp"

#include <concepts>
#include <type_traits>
#include <vector>

namespace opensandbox::mcp {

/// Walks a document's list of members (json/fields.hpp) for the schema of what is written: open, so
/// that members may be added.
class DocumentSchema {
  public:
    template <class T, class Shape = json::StandardForm<T>>
    void put(const json::Field& field, const T& /*member*/, Shape /*shape*/ = {}) {
        add(field, !std::same_as<T, typename json::Present<T>::Type>,
            schema_of<typename Shape::Stored>());
    }

    template <class T, class Walk>
    void object(const json::Field& field, const T& member, Walk walk) {
        if (field.read_within) return walk(*this, member);
        add(field, false, inner_schema(member, walk));
    }
    template <class T, class Walk>
    void object(const json::Field& field, const std::optional<T>& /*member*/, Walk walk) {
        add(field, true, inner_schema(T(), walk));
    }
    template <class T, class Walk>
    void object_if(const json::Field& field, bool /*there*/, const T& member, Walk walk) {
        add(field, true, inner_schema(member, walk));
    }

    template <class T, class Walk>
    void list(const json::Field& field, const std::vector<T>& /*members*/, Walk walk) {
        add(field, false, schema::list_of(inner_schema(T(), walk)));
    }

    static void check(bool /*holds*/, std::string_view /*name*/, std::string_view /*rule*/) {}

    [[nodiscard]] json::object build() const { return members_.build(true); }

  private:
    template <class T, class Walk>
    static json::object inner_schema(const T& member, Walk walk) {
        DocumentSchema inner;
        walk(inner, member);
        return inner.build();
    }

    template <class T>
    static json::object schema_of() {
        if constexpr (std::same_as<T, std::string>)
            return schema::text();
        else if constexpr (std::same_as<T, bool>)
            return schema::boolean();
        else if constexpr (std::integral<T>)
            return schema::integer();
        else if constexpr (std::floating_point<T>)
            return schema::number();
        else if constexpr (std::same_as<T, Timestamp>)
            return schema::time();
        else if constexpr (std::same_as<T, std::map<std::string, std::string>>)
            return schema::map_of_text();
        else
            return schema::list_of(schema_of<typename T::value_type>());
    }

    void add(const json::Field& field, bool optional, json::object schema) {
        if (!field.has(json::kSchema)) return;
        if (optional || field.null_empty) {
            members_.nullable(field.written, std::move(schema), field.description);
        } else {
            members_.required(field.written, std::move(schema), field.description);
        }
    }

    schema::Object members_;
};

template <class T, class Walk>
json::object document_schema(Walk walk) {
    DocumentSchema schema;
    const T document;
    walk(schema, document);
    return schema.build();
}

}  // namespace opensandbox::mcp
