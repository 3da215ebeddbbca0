#include "kube/access/kubeconfig_entries.hpp"

#include "json/yaml.hpp"

#include <string_view>

namespace opensandbox::kube {
namespace {

/// Adds a list of {"name": …, `member`: {…}}.
Status add_entries(const json::object& config, std::string_view list, std::string_view member,
                   const std::filesystem::path& file, KubeconfigEntries& to) {
    const json::value* items = json::find(config, list);
    if (!items) return Status();
    const std::string place = file.string() + ": " + std::string(list);
    if (!items->is_array()) return invalid(place + ": must be a list");
    for (const json::value& item : items->get_array()) {
        if (!item.is_object()) return invalid(place + ": must hold objects");
        auto name = json::get_string(item.get_object(), "name");
        if (!name) return name.error().within(place);
        if (name->value_or("").empty()) return invalid(place + ": name: is missing");
        KubeconfigEntry entry;
        entry.file = file;
        entry.place = place + ": " + **name;
        if (const json::value* content = json::find(item.get_object(), member)) {
            if (!content->is_object())
                return invalid(entry.place + ": " + std::string(member) + ": must be an object");
            entry.content = content->get_object();
        }
        to.try_emplace(**name, std::move(entry));
    }
    return Status();
}

Status add_file(const KubeconfigFile& file, MergedKubeconfig& to) {
    auto document = json::parse_yaml(file.text);
    if (!document) return document.error().within(file.path.string());
    // A file with nothing in it says nothing.
    if (document->is_null()) return Status();
    if (!document->is_object()) return invalid(file.path.string() + ": must be an object");
    const json::object& config = document->get_object();
    auto current = json::get_string(config, "current-context");
    if (!current) return current.error().within(file.path.string());
    if (to.current_context.empty()) to.current_context = current->value_or("");
    auto added = add_entries(config, "clusters", "cluster", file.path, to.clusters);
    if (added) added = add_entries(config, "users", "user", file.path, to.users);
    if (added) added = add_entries(config, "contexts", "context", file.path, to.contexts);
    return added;
}

}  // namespace

Result<MergedKubeconfig> merge_kubeconfigs(const std::vector<KubeconfigFile>& files) {
    MergedKubeconfig merged;
    for (const KubeconfigFile& file : files)
        if (auto added = add_file(file, merged); !added) return added.error();
    return merged;
}

}  // namespace opensandbox::kube
