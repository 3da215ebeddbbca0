#include "runtime/bucket_command.hpp"

#include "base/digest.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

namespace opensandbox::runtime {
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

/// What would make the tool run a program, or take an identity or place that is not the request's.
bool is_servers_own(std::string_view key) {
    constexpr std::array<std::string_view, 11> kKeys{"passwd_file",
                                                     "credential_process",
                                                     "ram_role",
                                                     "oss_ram_role",
                                                     "url",
                                                     "bucket",
                                                     "conf",
                                                     "config",
                                                     "oss_endpoint",
                                                     "oss_bucket",
                                                     "oss_bucket_prefix"};
    return key.starts_with("oss_access_key") || std::ranges::count(kKeys, key) > 0;
}

/// Whether the option's value is a file of the host, whatever it looks like.
bool names_file(std::string_view key) {
    constexpr std::array<std::string_view, 4> kKeys{"use_cache", "mime", "ahbe_conf", "log"};
    constexpr std::array<std::string_view, 5> kEnds{"dir", "file", "path", "conf", "_log"};
    return std::ranges::count(kKeys, key) > 0 ||
           std::ranges::any_of(kEnds, [&](std::string_view end) { return key.ends_with(end); });
}

/// Of ossfs an option may be several, with commas between.
Status check_option(const model::Volume& volume, std::string_view option,
                    const AllowedHostPaths& allowed) {
    while (!option.empty()) {
        std::string_view piece = option.substr(0, option.find(','));
        option.remove_prefix(std::min(option.size(), piece.size() + 1));
        std::string key(piece.substr(0, piece.find('=')));
        std::string value(piece.substr(std::min(piece.size(), key.size() + 1)));
        std::ranges::replace(key, '-', '_');
        if (is_servers_own(key)) {
            return refusal(volume, "INVALID_OSSFS_OPTION",
                           "option '" + key + "' is not the request's to choose.");
        }
        if (value.starts_with("http://") || value.starts_with("https://")) continue;
        bool file = value.find('/') != std::string::npos || (names_file(key) && !value.empty());
        if (!file) continue;
        std::error_code ec;
        auto real = std::filesystem::weakly_canonical(value, ec);
        bool inside = !ec && value.starts_with('/') &&
                      std::ranges::any_of(allowed, [&](const std::string& entry) {
                          return is_within(real.string(), entry);
                      });
        if (!inside) {
            return refusal(
                volume, "INVALID_OSSFS_OPTION",
                "option '" + key + "' must name a file below one of storage.allowed_host_paths.");
        }
    }
    return {};
}

/// The options that let everybody in, before the request's own, which win.
std::vector<std::string> open_options(const model::BucketVolume& bucket) {
    const bool first = bucket.version == "1.0";
    std::vector<std::string> wanted =
        first ? std::vector<std::string>{"allow_other", "umask=000", "uid=0", "gid=0"}
              : std::vector<std::string>{"allow_other=true", "file_mode=0777", "dir_mode=0777"};
    std::erase_if(wanted, [&](const std::string& option) {
        std::string key = option.substr(0, option.find('='));
        return key != "allow_other" &&
               std::ranges::any_of(bucket.options, [&](const std::string& given) {
                   return ("," + given).find("," + key + "=") != std::string::npos;
               });
    });
    return wanted;
}

}  // namespace

Status check_bucket_volume(const model::Volume& volume, const AllowedHostPaths& allowed) {
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
        if (auto ok = check_option(volume, option, allowed); !ok) return ok;
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

BucketCommand bucket_command(const model::Volume& volume, const std::string& path,
                             BucketAccess access) {
    const auto& bucket = std::get<model::BucketVolume>(volume.backend);
    std::string prefix = normal_prefix(volume);
    std::string url = with_scheme(bucket.endpoint);
    BucketCommand command;
    std::vector<std::string> options;
    if (access == BucketAccess::everybody) options = open_options(bucket);
    options.insert(options.end(), bucket.options.begin(), bucket.options.end());
    if (bucket.version == "1.0") {
        std::string source = bucket.bucket + (prefix.empty() ? "" : ":/" + prefix);
        command.argv = {"ossfs", source, path, "-o", "url=" + url, "-o", "passwd_file={secret}"};
        for (const std::string& option : options)
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
    for (const std::string& option : options)
        command.secret += "--" + option + "\n";
    return command;
}

std::string bucket_digest(const model::Volume& volume) {
    BucketCommand command = bucket_command(volume, "");
    std::string all = command.secret;
    for (const std::string& word : command.argv)
        all += word + '\n';
    return sha256_hex(all);
}

}  // namespace opensandbox::runtime
