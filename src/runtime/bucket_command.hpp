#pragma once

#include "model/volume.hpp"
#include "runtime/host_volume.hpp"

#include <string>
#include <vector>

/// The pure half of buckets: rules and command lines (lifecycle 2.8).
namespace opensandbox::runtime {

/// How one bucket is mounted.
struct BucketCommand {
    std::vector<std::string> argv;  ///< `{secret}` stands for the path of the file below
    std::string secret;             ///< content of a private file that lives as long as the command
};

/// Who may use the files of a mounted bucket.
enum class BucketAccess : std::uint8_t {
    as_asked,  ///< whoever the tool lets: the request's options say it
    everybody  ///< also ids that the host does not know, since no mount can shift them
};

/// The rules of lifecycle 2.8: bucket, endpoint, options, credentials, version, sub_path. The tool
/// runs as root on this host, so options may name none of its programs and identities, and of its
/// files only those in `allowed`. Errors VOLUME::INVALID_OSSFS_*, VOLUME::INVALID_SUB_PATH.
Status check_bucket_volume(const model::Volume& volume, const AllowedHostPaths& allowed = {});

/// `<root>/<bucket>[/<subPath>]`.
std::string bucket_path(const std::string& root, const model::Volume& volume);

/// The command line of ossfs (version 1.0) or ossfs2 (2.0).
BucketCommand bucket_command(const model::Volume& volume, const std::string& path,
                             BucketAccess access = BucketAccess::as_asked);

/// A digest of everything that a mount of it depends on, credentials included.
std::string bucket_digest(const model::Volume& volume);

}  // namespace opensandbox::runtime
