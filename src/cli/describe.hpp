#pragma once

#include "json/document.hpp"
#include "opensandbox/credential_vault.hpp"
#include "opensandbox/diagnostics.hpp"
#include "opensandbox/egress.hpp"
#include "opensandbox/images.hpp"
#include "opensandbox/sandbox.hpp"
#include "opensandbox/snapshots.hpp"
#include "opensandbox/templates.hpp"

/// The SDK's types as the documents that the command line prints: names and shapes of the contract
/// (clients 1), snake_case, null for what is absent.
namespace opensandbox::cli {

/// What is not there is null.
json::value or_null(const std::optional<std::string>& text);
json::object describe(const sdk::SandboxInfo& info);
json::object describe(const sdk::SandboxPage& page);
json::object describe(const sdk::Endpoint& endpoint);
json::object describe(const sdk::Metrics& metrics);
json::object describe(const sdk::CommandStatus& status);
json::object describe(const sdk::CommandPage& page);
json::object describe(const sdk::FileInfo& info);
json::array describe(const std::vector<sdk::FileInfo>& files);
json::object describe(const sdk::ImageInfo& info);
json::object describe(const sdk::SnapshotInfo& info);
json::object describe(const sdk::SnapshotPage& page);
json::object describe(const sdk::Pagination& pagination);
json::object describe(const sdk::ImageDetails& details);
json::object describe(const sdk::PushedImage& pushed);
json::array describe(const std::vector<sdk::NetworkRule>& rules);
json::object describe(const sdk::NetworkPolicy& policy);
json::object describe(const sdk::CredentialInfo& info);
json::array describe(const std::vector<sdk::CredentialInfo>& infos);
json::object describe(const sdk::BindingInfo& info);
json::array describe(const std::vector<sdk::BindingInfo>& infos);
json::object describe(const sdk::VaultState& state);
json::object describe(const sdk::TemplateInfo& info);
json::object describe(const sdk::TemplatePage& page);
json::object describe(const sdk::DiagnosticContent& content);

}  // namespace opensandbox::cli
