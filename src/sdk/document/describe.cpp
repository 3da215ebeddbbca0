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
    return json::row_fields(info, fields::kSandboxMembers);
}

json::object describe(const SandboxInfo& info) {
    return json::write_fields(info, fields::kSandboxMembers);
}

json::object describe(const Pagination& pagination) {
    return json::write_fields(pagination, fields::kPaginationMembers);
}

json::object describe(const SnapshotInfo& info) {
    return json::write_fields(info, fields::kSnapshotMembers);
}

json::object describe(const Endpoint& endpoint) {
    return json::write_fields(endpoint, fields::kEndpointMembers);
}

json::object describe(const Metrics& metrics) {
    return json::write_fields(metrics, fields::kMetricsMembers);
}

json::object describe(const CommandStatus& status) {
    return json::write_fields(status, fields::kCommandStatusMembers);
}

json::object describe(const CommandPage& page) {
    return json::write_fields(page, fields::kCommandPageMembers);
}

json::object describe(const FileInfo& info) {
    return json::write_fields(info, fields::kFileMembers);
}

json::object describe(const ImageInfo& info) {
    return json::write_fields(info, fields::kImageMembers);
}

json::object describe(const PushedImage& pushed) {
    return json::write_fields(pushed, fields::kPushedImageMembers);
}

json::object describe(const ImageDetails& details) {
    return json::write_fields(details, fields::kImageDetailsMembers);
}

json::object describe(const DiagnosticContent& content) {
    return json::write_fields(content, fields::kDiagnosticMembers);
}

json::object describe(const TemplateInfo& info) {
    return json::write_fields(info, fields::kTemplateMembers);
}

json::object describe(const NetworkPolicy& policy) {
    return json::write_fields(policy, fields::kNetworkPolicyMembers);
}

json::object describe(const CredentialInfo& info) {
    return json::write_fields(info, fields::kCredentialMembers);
}

json::object describe(const BindingInfo& info) {
    return json::write_fields(info, fields::kBindingMembers);
}

json::object describe(const VaultState& state) {
    return json::write_fields(state, fields::kVaultMembers);
}

json::object describe(const SandboxPage& page) {
    return json::write_fields(page, fields::page_members(fields::kSandboxMembers));
}

json::object describe(const SnapshotPage& page) {
    return json::write_fields(page, fields::page_members(fields::kSnapshotMembers));
}

json::object describe(const TemplatePage& page) {
    return json::write_fields(page, fields::page_members(fields::kTemplateMembers));
}

json::array describe(const std::vector<FileInfo>& files) {
    return list_of(files, fields::kFileMembers);
}

json::array describe(const std::vector<NetworkRule>& rules) {
    return list_of(rules, fields::kNetworkRuleMembers);
}

json::array describe(const std::vector<CredentialInfo>& infos) {
    return list_of(infos, fields::kCredentialMembers);
}

json::array describe(const std::vector<BindingInfo>& infos) {
    return list_of(infos, fields::kBindingMembers);
}

}  // namespace opensandbox::sdk
