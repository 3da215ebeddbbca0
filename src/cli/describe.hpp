#pragma once

#include "json/document.hpp"
#include "opensandbox/images.hpp"
#include "opensandbox/sandbox.hpp"
#include "opensandbox/snapshots.hpp"

/// The SDK's types as the documents that the command line prints: names and shapes of the contract
/// (kubernetes-cli section 4), snake_case, null for what is absent.
namespace opensandbox::cli {

json::object describe(const sdk::SandboxInfo& info);
json::object describe(const sdk::SandboxPage& page);
json::object describe(const sdk::Endpoint& endpoint);
json::object describe(const sdk::Metrics& metrics);
json::object describe(const sdk::CommandStatus& status);
json::object describe(const sdk::FileInfo& info);
json::array describe(const std::vector<sdk::FileInfo>& files);
json::object describe(const sdk::ImageInfo& info);
json::object describe(const sdk::SnapshotInfo& info);
json::object describe(const sdk::SnapshotPage& page);
json::object describe(const sdk::Pagination& pagination);
json::object describe(const sdk::ImageDetails& details);
json::object describe(const sdk::PushedImage& pushed);

}  // namespace opensandbox::cli
