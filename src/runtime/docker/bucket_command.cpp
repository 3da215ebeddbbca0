#include "runtime/docker/bucket_mounts.hpp"
#include "runtime/host_volume.hpp"

#include <algorithm>
#include <filesystem>

/// The pure half of buckets: rules and command lines.
namespace opensandbox::runtime::docker {
namespace {

Error refusal(const model::Volume& volume, std::string_view code, const std::string& what) {
    return {ErrorCode::invalid_argument, "VOLUME::" + std::string(code),
            "volumes." + volume.name + ".ossfs: " + what};
}

/// ^[a-z0-9]([a-z0-9-]{1,61}[a-z0-9])?$
bool is_bucket(std::string_view name) {
    constexpr std::size_t kShortest = 3;
    constexpr std::size_t kLongest = 63;
    auto alphanumeric = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
    if (name.size() < kShortest || name.size() > kLongest) return false;
    if (!alphanumeric(name.front()) || !alphanumeric(name.back())) return false;
    return std::ranges::all_of(name, [&](char c) { return alphanumeric(c) || c == '-'; });
}

/// Nothing that a shell, a file of settings or a command line would take for something else.
bool is_plain(std::string_view text) {
    return std::ranges::all_of(text, [](char c) {
        constexpr std::string_view kMeta = ";&|`$<>(){}[]!*?'\"\\#~";
        return c > ' ' && c != 0x7f && kMeta.find(c) == std::string_view::npos;
    });
}

std::string with_scheme(const std::string& endpoint) {
    return endpoint.find("://") == std::string::npos ? "https://" + endpoint : endpoint;
}

std::string normal_prefix(const model::Volume& volume) {
    std::string prefix = std::filesystem::path(volume.sub_path).lexically_normal().string();
    while (prefix.ends_with('/'))
        prefix.pop_back();
    return prefix == "." ? std::string() : prefix;
}

}  // namespace

Status check_bucket_volume(const model::Volume& volume) {
    const auto& bucket = std::get<model::BucketVolume>(volume.backend);
    if (!is_bucket(bucket.bucket)) {
        return refusal(volume, "INVALID_OSSFS_BUCKET",
                       "bucket '" + bucket.bucket +
                           "' must have 3 to 63 lower-case letters, digits and inner hyphens.");
    }
    if (bucket.endpoint.empty() || !is_plain(bucket.endpoint) || bucket.endpoint.front() == '-') {
        return refusal(volume, "INVALID_OSSFS_ENDPOINT",
                       "endpoint '" + bucket.endpoint + "' must be a host or URL.");
    }
    if (bucket.version != "1.0" && bucket.version != "2.0") {
        return refusal(volume, "INVALID_OSSFS_VERSION",
                       "version '" + bucket.version + "' must be 1.0 or 2.0.");
    }
    for (const std::string& option : bucket.options) {
        if (option.empty() || option.front() == '-' || !is_plain(option)) {
            return refusal(volume, "INVALID_OSSFS_OPTION",
                           "option '" + option +
                               "' must not be empty, begin with '-' or hold blanks or shell "
                               "characters.");
        }
    }
    for (const std::string& secret : {bucket.access_key_id, bucket.access_key_secret}) {
        bool printable = std::ranges::all_of(secret, [](char c) { return c > ' ' && c != 0x7f; });
        if (secret.empty() || !printable || secret.find(':') != std::string::npos) {
            return refusal(
                volume, "INVALID_OSSFS_CREDENTIALS",
                "accessKeyId and accessKeySecret must be given, without blanks and ':'.");
        }
    }
    bool breaks_lines = volume.sub_path.find_first_of("\r\n:") != std::string::npos;
    if (!is_valid_sub_path(volume.sub_path) || breaks_lines) {
        return refusal(
            volume, "INVALID_SUB_PATH",
            "subPath '" + volume.sub_path + "' must be relative and must not contain '..'.");
    }
    return {};
}

std::string bucket_path(const std::string& root, const model::Volume& volume) {
    const auto& bucket = std::get<model::BucketVolume>(volume.backend);
    std::string path = root + "/" + bucket.bucket;
    std::string prefix = normal_prefix(volume);
    return prefix.empty() ? path : path + "/" + prefix;
}

BucketCommand bucket_command(const model::Volume& volume, const std::string& path) {
    const auto& bucket = std::get<model::BucketVolume>(volume.backend);
    std::string prefix = normal_prefix(volume);
    std::string url = with_scheme(bucket.endpoint);
    BucketCommand command;
    if (bucket.version == "1.0") {
        std::string source = bucket.bucket + (prefix.empty() ? "" : ":/" + prefix);
        command.argv = {"ossfs", source, path, "-o", "url=" + url, "-o", "passwd_file={secret}"};
        for (const std::string& option : bucket.options)
            command.argv.insert(command.argv.end(), {"-o", option});
        command.secret =
            bucket.bucket + ":" + bucket.access_key_id + ":" + bucket.access_key_secret + "\n";
        return command;
    }
    command.argv = {"ossfs2", "mount", path, "-c", "{secret}"};
    command.secret = "--oss_endpoint=" + url + "\n--oss_bucket=" + bucket.bucket +
                     "\n--oss_access_key_id=" + bucket.access_key_id +
                     "\n--oss_access_key_secret=" + bucket.access_key_secret + "\n";
    if (!prefix.empty()) command.secret += "--oss_bucket_prefix=" + prefix + "/\n";
    for (const std::string& option : bucket.options)
        command.secret += "--" + option + "\n";
    return command;
}

}  // namespace opensandbox::runtime::docker
