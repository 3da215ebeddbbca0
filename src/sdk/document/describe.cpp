#include "sdk/document/describe.hpp"

#include "sdk/fields/command.hpp"
#include "sdk/fields/diagnostics.hpp"
#include "sdk/fields/egress.hpp"
#include "sdk/fields/endpoint.hpp"
#include "sdk/fields/file.hpp"
#include "sdk/fields/image.hpp"
#include "sdk/fields/metrics.hpp"
#include "sdk/fields/page.hpp"
#include "sdk/fields/sandbox.hpp"
#include "sdk/fields/snapshot.hpp"
#include "sdk/fields/template.hpp"

namespace opensandbox::sdk {

namespace {

template <class Item, class Members>
json::array list_of(const std::vector<Item>& items, Members members) {
    json::array array;
    for (const auto& item : items)
        array.emplace_back(json::write_fields(item, members));
    return array;
}

}  // namespace

json::value or_null(const std::optional<std::string>& text) {
    return text ? json::value(*text) : json::value();
}

json::object rows_of(const SandboxInfo& info) {
    return json::row_fields(info, fields::sandbox_members);
}

json::object describe(const SandboxInfo& info) {
    return json::write_fields(info, fields::sandbox_members);
}

json::object describe(const Pagination& pagination) {
    return json::write_fields(pagination, fields::pagination_members);
}

json::object describe(const SnapshotInfo& info) {
    return json::write_fields(info, fields::snapshot_members);
}

json::object describe(const Endpoint& endpoint) {
    return json::write_fields(endpoint, fields::endpoint_members);
}

json::object describe(const Metrics& metrics) {
    return json::write_fields(metrics, fields::metrics_members);
}

json::object describe(const CommandStatus& status) {
    return json::write_fields(status, fields::command_status_members);
}

json::object describe(const CommandPage& page) {
    return json::write_fields(page, fields::command_page_members);
}

json::object describe(const FileInfo& info) {
    return json::write_fields(info, fields::file_members);
}

json::object describe(const ImageInfo& info) {
    return json::write_fields(info, fields::image_members);
}

json::object describe(const PushedImage& pushed) {
    return json::write_fields(pushed, fields::pushed_image_members);
}

json::object describe(const ImageDetails& details) {
    return json::write_fields(details, fields::image_details_members);
}

json::object describe(const DiagnosticContent& content) {
    return json::write_fields(content, fields::diagnostic_members);
}

json::object describe(const TemplateInfo& info) {
    return json::write_fields(info, fields::template_members);
}

json::object describe(const NetworkPolicy& policy) {
    return json::write_fields(policy, fields::network_policy_members);
}

json::object describe(const CredentialInfo& info) {
    return json::write_fields(info, fields::credential_members);
}

json::object describe(const BindingInfo& info) {
    return json::write_fields(info, fields::binding_members);
}

json::object describe(const VaultState& state) {
    return json::write_fields(state, fields::vault_members);
}

json::object describe(const SandboxPage& page) {
    return json::write_fields(page, fields::page_members(fields::sandbox_members));
}

json::object describe(const SnapshotPage& page) {
    return json::write_fields(page, fields::page_members(fields::snapshot_members));
}

json::object describe(const TemplatePage& page) {
    return json::write_fields(page, fields::page_members(fields::template_members));
}

json::array describe(const std::vector<FileInfo>& files) {
    return list_of(files, fields::file_members);
}

json::array describe(const std::vector<NetworkRule>& rules) {
    return list_of(rules, fields::network_rule_members);
}

json::array describe(const std::vector<CredentialInfo>& infos) {
    return list_of(infos, fields::credential_members);
}

json::array describe(const std::vector<BindingInfo>& infos) {
    return list_of(infos, fields::binding_members);
}

}  // namespace opensandbox::sdk
