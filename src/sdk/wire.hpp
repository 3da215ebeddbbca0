#pragma once

#include "opensandbox/commands.hpp"
#include "opensandbox/diagnostics.hpp"
#include "opensandbox/files.hpp"
#include "opensandbox/images.hpp"
#include "opensandbox/metrics.hpp"
#include "opensandbox/sandbox.hpp"
#include "opensandbox/sessions.hpp"
#include "opensandbox/snapshots.hpp"
#include "opensandbox/templates.hpp"
#include "sdk/fields/file_mode.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// JSON of both contracts to and from the public types. Pure; answers that lack a member or have it
/// in another type are `protocol` errors that name it.
namespace opensandbox::sdk::wire {

// Sandboxes (lifecycle 2).
/// `invalid_argument` when network_policy, volumes or request_body is not the JSON it must be.
Result<std::string> encode_create(const CreateOptions& options);
std::string encode_expiry(TimePoint at);
std::string encode_metadata_patch(const std::map<std::string, std::optional<std::string>>& changes);
/// The `metadata` query value: itself a query string, "k=v&k2=v2".
std::string encode_metadata_filter(const std::map<std::string, std::string>& metadata);
Result<std::string> decode_created_id(std::string_view body);
/// Whether the answer to a create confirms an interception mode; fine where none was asked for. An
/// answer that says none stands for "all". Else `unsupported` with INTERCEPTION_MODE_MISMATCH.
Status check_interception_mode(const std::string& wanted, std::string_view created);
Result<SandboxInfo> decode_sandbox(std::string_view body);
Result<SandboxPage> decode_sandbox_page(std::string_view body);
std::string encode_fork(const ForkOptions& options);
Result<std::vector<SandboxInfo>> decode_forks(std::string_view body);
Result<TimePoint> decode_expiry(std::string_view body);
Result<Endpoint> decode_endpoint(std::string_view body);
Result<std::string> decode_version(std::string_view body);
Result<ImageInfo> decode_image(std::string_view body);
Result<std::vector<ImageInfo>> decode_images(std::string_view body);
std::string encode_snapshot(const std::optional<std::string>& name);
Result<SnapshotInfo> decode_snapshot(std::string_view body);
Result<SnapshotPage> decode_snapshot_page(std::string_view body);
/// An image to be made; without `source` of a snapshot.
std::string encode_named_image(const std::string& source, const std::string& reference,
                               const ImageConfigChange& change);

// Ours (specs/lifecycle.yaml, /images).
std::string encode_transfer(const std::string& reference, const std::string& destination,
                            const std::optional<RegistryAuth>& login);
/// One line of a transfer: progress, or how it ended. Exactly one member is set.
struct TransferLine {
    std::optional<LayerProgress> progress;
    std::optional<ImageInfo> image;
    std::optional<PushedImage> pushed;
    std::optional<Error> error;
};
Result<TransferLine> decode_transfer_line(std::string_view line);
Result<ImageDetails> decode_image_details(std::string_view body);
Result<PrunedImages> decode_pruned(std::string_view body);

// Templates (lifecycle 2.9) and diagnostics.
/// `invalid_argument` when image or publish is missing, or request_body is no JSON object.
Result<std::string> encode_template(const TemplateRequest& request);
Result<TemplateInfo> decode_template(std::string_view body);
Result<TemplatePage> decode_template_page(std::string_view body);
Result<DiagnosticContent> decode_diagnostic_content(std::string_view body);

// Agent, execd contract sections 2, 3, 4, 6, 7.
std::string encode_command(const CommandRequest& request, bool background);
Result<Event> decode_event(std::string_view frame);
/// The same without the short cut for plain output.
Result<Event> decode_any_event(std::string_view frame);
/// Reads an event of the plainest and by far most frequent form, `{"type":"stdout","text":"…",
/// "timestamp":1}` in ASCII, many times faster than a JSON document. Empty when the frame is
/// anything else; decode_event() then says what it is.
std::optional<Event> scan_output_event(std::string_view frame);
Result<CommandStatus> decode_command_status(std::string_view body);
Result<CommandPage> decode_command_page(std::string_view body);
Result<Metrics> decode_metrics(std::string_view body);

/// {"/path":{"owner":…,"group":…,"mode":…}}
std::string encode_permissions(const std::vector<std::string>& paths, const Permissions& wanted);
/// The `metadata` part of an upload.
std::string encode_upload_metadata(std::string_view path, const Permissions& wanted);
std::string encode_move(std::string_view from, std::string_view to);
std::string encode_replace(std::string_view path, std::string_view old_text,
                           std::string_view new_text);
Result<std::vector<FileInfo>> decode_file_list(std::string_view body);
/// An object keyed by the paths asked for, brought into their order.
Result<std::vector<FileInfo>> decode_file_map(std::string_view body,
                                              const std::vector<std::string>& paths);
Result<std::uint64_t> decode_replaced_count(std::string_view body, const std::string& path);

std::string encode_session(const std::string& working_directory);
std::string encode_session_run(const SessionRequest& request);
Result<std::string> decode_session_id(std::string_view body);

}  // namespace opensandbox::sdk::wire
