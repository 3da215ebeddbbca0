#include "egress/vault/binding_document.hpp"

#include "egress/policy/target.hpp"
#include "egress/vault/header_names.hpp"
#include "egress/vault/request_path.hpp"
#include "egress/vault/vault_documents.hpp"

#include <algorithm>

namespace opensandbox::egress {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxPlaceholder = 1024;

template <class T>
void add_unique(std::vector<T>& list, T item) {
    if (std::ranges::find(list, item) == list.end()) list.push_back(std::move(item));
}

void read_schemes(DocumentReader& reader, const json::object& from, const std::string& place,
                  BindingMatch& match) {
    for (const std::string& text : reader.texts(from, "schemes", place, kMaxBindingItems)) {
        std::string scheme = lower_case(text);
        if (scheme != "https" && scheme != "http") {
            return reader.fail(member_place(place, "schemes"), "must be https or http");
        }
        add_unique(match.schemes, std::move(scheme));
    }
    if (match.schemes.empty()) match.schemes.emplace_back("https");
}

void read_ports(DocumentReader& reader, const json::object& from, const std::string& place,
                BindingMatch& match) {
    if (const json::array* ports = reader.list(from, "ports", place, kMaxBindingItems)) {
        for (const json::value& item : *ports) {
            boost::system::error_code ec;
            const auto port = item.to_number<std::uint16_t>(ec);
            if (ec || port == 0) {
                return reader.fail(member_place(place, "ports"), "must be from 1 to 65535");
            }
            add_unique(match.ports, port);
        }
    }
    if (!match.ports.empty()) return;
    for (const std::string& scheme : match.schemes) {
        match.ports.push_back(scheme == "https" ? 443 : 80);
    }
}

void read_hosts(DocumentReader& reader, const json::object& from, const std::string& place,
                BindingMatch& match) {
    const std::string where = member_place(place, "hosts");
    const std::vector<std::string> hosts = reader.texts(from, "hosts", place, kMaxBindingItems);
    if (hosts.empty()) reader.fail(where, "must not be empty");
    for (std::size_t i = 0; i < hosts.size(); ++i) {
        std::string_view text = hosts[i];
        const bool wildcard = text.starts_with("*.");
        if (wildcard) text.remove_prefix(2);
        Result<std::string> name = parse_host_name(text);
        if (!name) return reader.fail(item_place(where, i), name.error().message());
        if (name->find('.') == std::string::npos) {
            return reader.fail(item_place(where, i), "must be a full name with a dot");
        }
        match.hosts.emplace_back(wildcard, std::move(*name));
    }
}

void read_methods(DocumentReader& reader, const json::object& from, const std::string& place,
                  BindingMatch& match) {
    for (std::string method : reader.texts(from, "methods", place, kMaxBindingItems)) {
        for (char& c : method) {
            if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
        }
        // A method is a token, as a header's name is.
        if (!is_header_name(method)) {
            return reader.fail(member_place(place, "methods"), "must be names of HTTP methods");
        }
        add_unique(match.methods, std::move(method));
    }
    match.methods_given = !match.methods.empty();
    if (!match.methods_given) match.methods = {"GET", "POST", "PUT", "PATCH", "DELETE"};
}

void read_paths(DocumentReader& reader, const json::object& from, const std::string& place,
                BindingMatch& match) {
    const std::string where = member_place(place, "paths");
    const std::vector<std::string> paths = reader.texts(from, "paths", place, kMaxBindingItems);
    for (std::size_t i = 0; i < paths.size(); ++i) {
        const PathPattern pattern(paths[i]);
        std::string_view wrong;
        if (!pattern.path.starts_with('/')) {
            wrong = "must start with /";
        } else if (pattern.path.find('*') != std::string::npos) {
            wrong = "may have a * at its end only";
        } else if (pattern.path.find_first_of("?# ") != std::string::npos ||
                   leaves_its_place(pattern.path)) {
            wrong = "must be a path without query, spaces and dot segments";
        }
        if (!wrong.empty()) return reader.fail(item_place(where, i), wrong);
        match.paths.push_back(pattern);
    }
    match.paths_given = !match.paths.empty();
    if (!match.paths_given) match.paths.emplace_back("/*");
}

BindingMatch read_match(DocumentReader& reader, const json::object& from,
                        const std::string& place) {
    BindingMatch match;
    const json::value* value = DocumentReader::find(from, "match");
    if (!value) {
        reader.fail(member_place(place, "match"), "must not be empty");
        return match;
    }
    const std::string where = member_place(place, "match");
    const json::object* object =
        reader.object(*value, where, {"schemes", "ports", "hosts", "methods", "paths"});
    if (!object) return match;
    read_schemes(reader, *object, where, match);
    read_ports(reader, *object, where, match);
    read_hosts(reader, *object, where, match);
    read_methods(reader, *object, where, match);
    read_paths(reader, *object, where, match);
    return match;
}

HeaderCredential read_header(DocumentReader& reader, const json::object& from,
                             const std::string& place) {
    HeaderCredential header;
    const std::string_view name = reader.required_text(from, "name", place);
    header.credential = reader.required_text(from, "credential", place);
    if (reader.failed()) return header;
    if (!is_header_name(name)) {
        reader.fail(member_place(place, "name"), "must be the name of an HTTP header");
    } else if (is_reserved_header(name)) {
        reader.fail(member_place(place, "name"),
                    "header " + canonical_header_name(name) + " is reserved");
    }
    header.name = canonical_header_name(name);
    return header;
}

void read_custom_headers(DocumentReader& reader, const json::object& from, const std::string& place,
                         BindingAuth& auth) {
    const std::string where = member_place(place, "headers");
    const json::array* items = reader.list(from, "headers", place, kMaxBindingItems);
    if (!items || items->empty()) return reader.fail(where, "must not be empty");
    for (std::size_t i = 0; i < items->size(); ++i) {
        const std::string at = item_place(where, i);
        const json::object* object = reader.object((*items)[i], at, {"name", "credential"});
        if (!object) return;
        HeaderCredential header = read_header(reader, *object, at);
        if (std::ranges::find(auth.headers, header.name, &HeaderCredential::name) !=
            auth.headers.end()) {
            return reader.fail(member_place(at, "name"),
                               "header " + header.name + " is there twice");
        }
        auth.headers.push_back(std::move(header));
    }
}

Substitution read_substitution(DocumentReader& reader, const json::value& value,
                               const std::string& place) {
    Substitution out;
    const json::object* object = reader.object(value, place, {"credential", "placeholder", "in"});
    if (!object) return out;
    out.credential = reader.required_text(*object, "credential", place);
    out.placeholder = reader.required_text(*object, "placeholder", place);
    if (out.placeholder.size() > kMaxPlaceholder) {
        reader.fail(member_place(place, "placeholder"), "must not be longer than 1024 bytes");
    }
    const std::vector<std::string> surfaces = reader.texts(*object, "in", place, 4);
    if (surfaces.empty()) reader.fail(member_place(place, "in"), "must not be empty");
    for (const std::string& surface : surfaces) {
        if (surface == "path") {
            out.path = true;
        } else if (surface == "query") {
            out.query = true;
        } else if (surface == "header") {
            out.header = true;
        } else if (surface == "body") {
            out.body = true;
        } else {
            reader.fail(member_place(place, "in"), "must be of path, query, header and body");
        }
    }
    return out;
}

/// One placeholder means one value, wherever it stands.
void read_substitutions(DocumentReader& reader, const json::object& from, const std::string& place,
                        BindingAuth& auth) {
    const std::string where = member_place(place, "substitutions");
    const json::array* items = reader.list(from, "substitutions", place, kMaxBindingItems);
    if (!items) return;
    for (std::size_t i = 0; i < items->size() && !reader.failed(); ++i) {
        Substitution made = read_substitution(reader, (*items)[i], item_place(where, i));
        if (std::ranges::find(auth.substitutions, made.placeholder, &Substitution::placeholder) !=
            auth.substitutions.end()) {
            reader.fail(item_place(where, i) + ".placeholder", "is there twice");
        }
        auth.substitutions.push_back(std::move(made));
    }
}

/// The members that a type does not have are as good as unknown ones.
BindingAuth read_auth(DocumentReader& reader, const json::object& from, const std::string& place) {
    BindingAuth auth;
    const std::string where = member_place(place, "auth");
    const json::value* value = DocumentReader::find(from, "auth");
    if (!value) {
        reader.fail(where, "must not be empty");
        return auth;
    }
    const json::object* object =
        reader.object(*value, where, {"type", "credential", "name", "headers", "substitutions"});
    if (!object) return auth;
    const std::string_view type = reader.required_text(*object, "type", where);
    const auto unused = [&](std::initializer_list<std::string_view> members) {
        for (const std::string_view member : members) {
            if (!DocumentReader::find(*object, member)) continue;
            reader.fail(member_place(where, member),
                        "does not belong to type " + std::string(type));
        }
    };
    if (type == "bearer" || type == "basic") {
        auth.type = type == "bearer" ? AuthType::bearer : AuthType::basic;
        unused({"name", "headers"});
        HeaderCredential header;
        header.name = "Authorization";
        header.credential = reader.required_text(*object, "credential", where);
        auth.headers.push_back(std::move(header));
    } else if (type == "apiKey") {
        auth.type = AuthType::api_key;
        unused({"headers"});
        auth.headers.push_back(read_header(reader, *object, where));
    } else if (type == "customHeaders") {
        auth.type = AuthType::custom_headers;
        unused({"name", "credential"});
        read_custom_headers(reader, *object, where, auth);
    } else if (type == "passthrough") {
        auth.type = AuthType::passthrough;
        unused({"name", "credential", "headers"});
    } else {
        reader.fail(member_place(where, "type"),
                    "must be bearer, basic, apiKey, customHeaders or passthrough");
    }
    read_substitutions(reader, *object, where, auth);
    return auth;
}

}  // namespace

Binding read_binding(DocumentReader& reader, const json::value& value, const std::string& place) {
    Binding binding;
    const json::object* object = reader.object(value, place, {"name", "match", "auth"});
    if (!object) return binding;
    binding.name = reader.required_text(*object, "name", place);
    binding.match = read_match(reader, *object, place);
    binding.auth = read_auth(reader, *object, place);
    return binding;
}

}  // namespace opensandbox::egress
