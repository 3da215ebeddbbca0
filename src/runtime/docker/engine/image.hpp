#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace opensandbox::runtime::docker {

using StringMap = std::vector<std::pair<std::string, std::string>>;

/// An image of the engine, from GET /images/{name}/json.
struct ImageInfo {
    std::string id;  ///< "sha256:…"
    std::vector<std::string> repo_tags;
    std::vector<std::string> repo_digests;
    std::string os;
    std::string architecture;  ///< "amd64", "arm64"
    std::string variant;       ///< "v8" or empty
    std::int64_t size_bytes = 0;
    std::vector<std::string> env;  ///< "NAME=value"
    std::vector<std::string> cmd;
    std::vector<std::string> entrypoint;
    std::string user;
    std::string working_directory;
    std::vector<std::string> exposed_ports;  ///< "8080/tcp"
    StringMap labels;
};

/// "sha256:…" of an image's manifest by its `repo_digests` ("name@sha256:…"); empty when they name
/// none, or more than one: then it is not known which was meant.
std::string manifest_digest(const std::vector<std::string>& repo_digests);

/// An image of the list, from GET /images/json.
struct ImageSummary {
    std::string id;
    std::vector<std::string> repo_tags;
    StringMap labels;
    std::int64_t size_bytes = 0;
};

/// Credentials for one pull.
struct RegistryAuth {
    std::string username;
    std::string password;
    std::string server_address;  ///< may be empty: the registry of the reference
};

/// One line of what a pull reports.
struct PullProgress {
    std::string id;      ///< of the layer, or empty
    std::string status;  ///< "Downloading", "Pull complete"
    std::int64_t current_bytes = 0;
    std::int64_t total_bytes = 0;  ///< 0: unknown
};

/// What to pull.
struct PullRequest {
    std::string image;     ///< reference; without tag and digest: "latest"
    std::string platform;  ///< "linux/arm64" or empty
    RegistryAuth auth;     ///< sent when its username or password is not empty
    std::function<void(const PullProgress&)> on_progress;  ///< may be null
};

/// A container turned into an image, POST /commit.
struct CommitRequest {
    std::string container;
    std::string repository;
    std::string tag;
    std::string comment;
    bool pause = true;                 ///< stop its processes meanwhile
    std::vector<std::string> changes;  ///< Dockerfile lines: "CMD [\"/bin/sh\"]", "LABEL a=b"
};

/// An image reference as POST /images/create takes it.
struct PullReference {
    std::string name;
    std::string tag;  ///< tag or "sha256:…"
};

/// A reference without tag and digest means its tag "latest"; with both, the digest decides. Pure.
PullReference split_reference(std::string_view image);

/// The value of X-Registry-Auth: URL-safe base64 of a JSON document. Where `auth` names no server
/// the registry of `image` stands for it. Pure.
std::string registry_auth_header(const RegistryAuth& auth, std::string_view image);

}  // namespace opensandbox::runtime::docker
