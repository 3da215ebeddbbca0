#pragma once

#include "registry/session.hpp"

#include <boost/asio/thread_pool.hpp>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace opensandbox::registry {

/// A blob to fetch and what must be true of it.
struct BlobRequest {
    std::string hex;  ///< of its sha256 digest
    std::uint64_t size = 0;
    std::filesystem::path file;                           ///< made; not there yet
    std::function<void(std::uint64_t done)> on_progress;  ///< may be null
    std::shared_ptr<bool> cancelled;                      ///< true: end soon; may be null
};

/// Fetches a blob into a file. A connection that is cut is taken up again where it broke, until
/// several attempts in a row bring nothing. `invalid_argument` when size or digest are wrong. Files
/// are written on `pool`. On failure the file may be left: its directory is the caller's.
Awaitable<Status> download_blob(Session& session, asio::thread_pool& pool, BlobRequest request);

/// The first byte that a 206 answer brings, from its Content-Range ("bytes 5-9/10"); empty when it
/// is malformed. Pure.
std::optional<std::uint64_t> range_start(std::string_view content_range);

/// A blob to send.
struct UploadRequest {
    std::string hex;  ///< of its sha256 digest
    std::uint64_t size = 0;
    std::filesystem::path file;  ///< its bytes; empty: `content`
    std::string content;
    std::function<void(std::uint64_t done)> on_progress;  ///< may be null
    std::shared_ptr<bool> cancelled;                      ///< true: end soon; may be null
};

/// Whether the repository has the blob.
Awaitable<Result<bool>> has_blob(Session& session, std::string hex);

/// Asks the registry to take the blob from another of its repositories; false when it does not.
Awaitable<Result<bool>> mount_blob(Session& session, std::string hex, std::string from);

/// Sends a blob in chunks. A connection that is cut is taken up again where the registry says it
/// broke, until several attempts in a row bring nothing. Files are read on `pool`.
Awaitable<Status> upload_blob(Session& session, asio::thread_pool& pool, UploadRequest request);

/// How many bytes an upload has, from the Range of its status ("0-9" is 10); empty when it is
/// malformed. Pure.
std::optional<std::uint64_t> uploaded_bytes(std::string_view range);

}  // namespace opensandbox::registry
