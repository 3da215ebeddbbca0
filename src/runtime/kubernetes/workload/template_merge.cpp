#include "runtime/kubernetes/workload/template_merge.hpp"

#include "runtime/kubernetes/names.hpp"

#include <algorithm>
#include <initializer_list>

namespace opensandbox::runtime::kubernetes {
namespace {

/// Null when some member on the way is not there.
const json::value* at_path(const json::object& from, std::initializer_list<std::string_view> path) {
    const json::object* here = &from;
    const json::value* found = nullptr;
    for (const std::string_view name : path) {
        if (!here) return nullptr;
        found = json::find(*here, name);
        here = found ? found->if_object() : nullptr;
    }
    return found;
}

const json::array* list_at(const json::object& from, std::initializer_list<std::string_view> path) {
    const json::value* found = at_path(from, path);
    return found ? found->if_array() : nullptr;
}

bool is_named(const json::value& element, std::string_view name) {
    const json::object* object = element.if_object();
    const json::value* given = object ? json::find(*object, "name") : nullptr;
    return given && given->is_string() && given->get_string() == name;
}

/// Elements of `from` whose `key` no element of `into` has.
void append_missing(json::array& into, const json::array* from, std::string_view key) {
    if (!from) return;
    const auto value_of = [&](const json::value& element) -> const json::value* {
        const json::object* object = element.if_object();
        return object ? json::find(*object, key) : nullptr;
    };
    for (const json::value& element : *from) {
        const json::value* wanted = value_of(element);
        const bool there = std::ranges::any_of(into, [&](const json::value& other) {
            const json::value* given = value_of(other);
            return wanted && given && *wanted == *given;
        });
        if (wanted && !there) into.push_back(element);
    }
}

const json::object* sandbox_container(const json::object& from) {
    const json::array* containers = list_at(from, {"spec", "template", "spec", "containers"});
    if (!containers || containers->empty()) return nullptr;
    const auto named = std::ranges::find_if(
        *containers, [](const json::value& one) { return is_named(one, kSandboxContainer); });
    return (named == containers->end() ? containers->front() : *named).if_object();
}

json::array& list_in(json::object& object, std::string_view name) {
    json::value& list = object[name];
    if (!list.is_array()) list = json::array();
    return list.get_array();
}

}  // namespace

json::object merge_over(json::object base, const json::object& over) {
    for (const auto& [name, value] : over) {
        if (value.is_null()) continue;
        json::value& below = base[name];
        if (value.is_object()) {
            const json::object* kept = below.if_object();
            below = merge_over(kept ? *kept : json::object(), value.get_object());
        } else {
            below = value;
        }
    }
    return base;
}

json::object merge_workload(const json::object& under, const json::object& manifest) {
    if (under.empty()) return manifest;
    json::object merged = merge_over(under, manifest);
    json::object& pod = merged["spec"].as_object()["template"].as_object()["spec"].as_object();
    append_missing(list_in(pod, "volumes"), list_at(under, {"spec", "template", "spec", "volumes"}),
                   "name");
    const json::object* below = sandbox_container(under);
    if (!below) return merged;
    json::object& container = pod["containers"].as_array().front().as_object();
    append_missing(list_in(container, "volumeMounts"), list_at(*below, {"volumeMounts"}),
                   "mountPath");
    const json::value* context = json::find(*below, "securityContext");
    if (context && context->is_object()) {
        const json::object* own = container["securityContext"].if_object();
        container["securityContext"] =
            merge_over(context->get_object(), own ? *own : json::object());
    }
    return merged;
}

}  // namespace opensandbox::runtime::kubernetes
