#pragma once

#include "json/document.hpp"
#include "opensandbox/credential_vault.hpp"
#include "opensandbox/diagnostics.hpp"
#include "opensandbox/egress.hpp"
#include "opensandbox/images.hpp"
#include "opensandbox/sandbox.hpp"
#include "opensandbox/snapshots.hpp"
#include "opensandbox/templates.hpp"

/// The SDK's types as the documents that the command line prints and tools answer with: names and
/// shapes of the contract (clients 1), snake_case, null for what is absent.
namespace opensandbox::sdk {

/// What is not there is null.
json::value or_null(const std::optional<std::string>& text);
json::object describe(const SandboxInfo& info);
/// A sandbox as names and values: the parts of its status and image apart.
json::object rows_of(const SandboxInfo& info);
json::object describe(const SandboxPage& page);
json::object describe(const Endpoint& endpoint);
json::object describe(const Metrics& metrics);
json::object describe(const CommandStatus& status);
json::object describe(const CommandPage& page);
json::object describe(const FileInfo& info);
json::array describe(const std::vector<FileInfo>& files);
json::object describe(const ImageInfo& info);
json::object describe(const SnapshotInfo& info);
json::object describe(const SnapshotPage& page);
json::object describe(const Pagination& pagination);
json::object describe(const ImageDetails& details);
json::object describe(const PushedImage& pushed);
json::array describe(const std::vector<NetworkRule>& rules);
json::object describe(const NetworkPolicy& policy);
json::object describe(const CredentialInfo& info);
json::array describe(const std::vector<CredentialInfo>& infos);
json::object describe(const BindingInfo& info);
json::array describe(const std::vector<BindingInfo>& infos);
json::object describe(const VaultState& state);
json::object describe(const TemplateInfo& info);
json::object describe(const TemplatePage& page);
json::object describe(const DiagnosticContent& content);

}  // namespace opensandbox::sdk
