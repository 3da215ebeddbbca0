#include "egress/vault/vault_documents.hpp"

#include "base/json_string.hpp"
#include "egress/vault/binding_document.hpp"
#include "egress/vault/document_reader.hpp"

#include <algorithm>

namespace opensandbox::egress {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxName = 256;
constexpr std::size_t kMaxSecret = 64 * 1024;

/// Names stand in paths of the API and in messages.
void check_name(DocumentReader& reader, std::string_view name, const std::string& place) {
    const bool printable = std::ranges::none_of(
        name, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
    if (!printable || name.size() > kMaxName) {
        reader.fail(member_place(place, "name"),
                    "must be at most 256 bytes without control characters");
    }
}

Credential read_credential(DocumentReader& reader, const json::value& value,
                           const std::string& place) {
    Credential credential;
    const json::object* object = reader.object(value, place, {"name", "source"});
    if (!object) return credential;
    credential.name = reader.required_text(*object, "name", place);
    check_name(reader, credential.name, place);
    const std::string where = member_place(place, "source");
    const json::value* member = DocumentReader::find(*object, "source");
    if (!member) {
        reader.fail(where, "must not be empty");
        return credential;
    }
    const json::object* source = reader.object(*member, where, {"type", "value"});
    if (!source) return credential;
    const std::string_view type = reader.text(*source, "type", where).value_or("");
    if (!type.empty() && type != "inline") {
        std::string what = "unsupported credential source type ";
        append_json_string(what, type.substr(0, 24));
        reader.fail(member_place(where, "type"), what);
    }
    const std::string_view secret = reader.text(*source, "value", where).value_or("");
    if (secret.empty()) reader.fail(member_place(where, "value"), "must not be empty");
    if (secret.size() > kMaxSecret) {
        reader.fail(member_place(where, "value"), "must not be longer than 64 KiB");
    }
    if (!reader.failed()) credential.secret = std::make_shared<const Secret>(secret);
    return credential;
}

std::vector<Credential> read_credentials(DocumentReader& reader, const json::object& from,
                                         std::string_view name, const std::string& place) {
    std::vector<Credential> out;
    const json::array* items = reader.list(from, name, place, kMaxVaultItems);
    if (!items) return out;
    const std::string where = member_place(place, name);
    for (std::size_t i = 0; i < items->size() && !reader.failed(); ++i) {
        out.push_back(read_credential(reader, (*items)[i], item_place(where, i)));
    }
    return out;
}

std::vector<Binding> read_bindings(DocumentReader& reader, const json::object& from,
                                   std::string_view name, const std::string& place) {
    std::vector<Binding> out;
    const json::array* items = reader.list(from, name, place, kMaxVaultItems);
    if (!items) return out;
    const std::string where = member_place(place, name);
    for (std::size_t i = 0; i < items->size() && !reader.failed(); ++i) {
        out.push_back(read_binding(reader, (*items)[i], item_place(where, i)));
        check_name(reader, out.back().name, item_place(where, i));
    }
    return out;
}

/// The set `name` of a mutation, "credentials" or "bindings"; null when it is absent.
const json::object* read_set(DocumentReader& reader, const json::object& root,
                             std::string_view name) {
    const json::value* set = DocumentReader::find(root, name);
    return set ? reader.object(*set, std::string(name), {"add", "replace", "delete"}) : nullptr;
}

}  // namespace

Result<VaultCreate> parse_vault_create(std::string_view body) {
    const Result<json::value> document = DocumentReader::parse(body, kMaxVaultBytes);
    if (!document) return document.error();
    DocumentReader reader;
    VaultCreate create;
    if (const json::object* root = reader.object(*document, "", {"credentials", "bindings"})) {
        create.credentials = read_credentials(reader, *root, "credentials", "");
        create.bindings = read_bindings(reader, *root, "bindings", "");
    }
    if (reader.failed()) return reader.error();
    return create;
}

Result<VaultMutation> parse_vault_mutation(std::string_view body) {
    const Result<json::value> document = DocumentReader::parse(body, kMaxVaultBytes);
    if (!document) return document.error();
    DocumentReader reader;
    VaultMutation out;
    const json::object* root =
        reader.object(*document, "", {"expectedRevision", "credentials", "bindings"});
    if (!root) return reader.error();
    if (const json::value* revision = DocumentReader::find(*root, "expectedRevision")) {
        boost::system::error_code ec;
        out.expected_revision = revision->to_number<std::uint64_t>(ec);
        if (ec) reader.fail("expectedRevision", "must be a whole number");
    }
    if (const json::object* set = read_set(reader, *root, "credentials")) {
        out.add_credentials = read_credentials(reader, *set, "add", "credentials");
        out.replace_credentials = read_credentials(reader, *set, "replace", "credentials");
        out.delete_credentials = reader.texts(*set, "delete", "credentials", kMaxVaultItems);
    }
    if (const json::object* set = read_set(reader, *root, "bindings")) {
        out.add_bindings = read_bindings(reader, *set, "add", "bindings");
        out.replace_bindings = read_bindings(reader, *set, "replace", "bindings");
        out.delete_bindings = reader.texts(*set, "delete", "bindings", kMaxVaultItems);
    }
    if (reader.failed()) return reader.error();
    return out;
}

}  // namespace opensandbox::egress
