#include "agent/code/jupyter/server.hpp"

#include <algorithm>

namespace opensandbox::agent::jupyter {
namespace {

std::string reply_text(const json::object& from, std::string_view name) {
    const json::value* member = json::find(from, name);
    return member && member->is_string() ? std::string(member->get_string()) : std::string();
}

const json::object* object_member(const json::object& from, std::string_view name) {
    const json::value* member = json::find(from, name);
    return member && member->is_object() ? &member->get_object() : nullptr;
}

std::string lower(std::string text) {
    for (char& c : text) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return text;
}

}  // namespace

std::vector<KernelSpec> read_kernel_specs(const json::value& reply) {
    std::vector<KernelSpec> specs;
    const json::object* all =
        reply.is_object() ? object_member(reply.get_object(), "kernelspecs") : nullptr;
    if (!all) return specs;
    for (const auto& [name, entry] : *all) {
        if (!entry.is_object()) continue;
        const json::object* spec = object_member(entry.get_object(), "spec");
        std::string language = spec ? lower(reply_text(*spec, "language")) : std::string();
        if (!language.empty()) specs.emplace_back(std::string(name), std::move(language));
    }
    std::ranges::sort(specs, {}, &KernelSpec::name);
    return specs;
}

const KernelSpec* choose_kernel(const std::vector<KernelSpec>& specs, std::string_view language) {
    const std::string wanted = lower(std::string(language));
    const KernelSpec* chosen = nullptr;
    for (const KernelSpec& spec : specs) {
        if (spec.language != wanted) continue;
        if (spec.name == wanted) return &spec;
        if (!chosen || chosen->name == "python3" ||
            (spec.name != "python3" && spec.name < chosen->name)) {
            chosen = &spec;
        }
    }
    return chosen;
}

Result<Session> read_session(const json::value& reply) {
    Session session;
    if (reply.is_object()) {
        session.id = reply_text(reply.get_object(), "id");
        session.path = reply_text(reply.get_object(), "path");
        if (const json::object* kernel = object_member(reply.get_object(), "kernel")) {
            session.kernel_id = reply_text(*kernel, "id");
            session.kernel_name = reply_text(*kernel, "name");
        }
    }
    if (session.id.empty() || session.kernel_id.empty()) {
        return Error(ErrorCode::bad_gateway, "Jupyter: a session without an id or a kernel");
    }
    return session;
}

}  // namespace opensandbox::agent::jupyter
