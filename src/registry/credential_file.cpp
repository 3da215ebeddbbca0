#include "registry/credential_file.hpp"

#include "image/staging.hpp"
#include "json/document.hpp"

#include <sys/stat.h>

namespace opensandbox::registry {
namespace {

constexpr std::string_view kLogins = "registries";

Result<json::object> read(const std::filesystem::path& path) {
    auto text = image::read_file(path);
    if (!text && text.error().code() == ErrorCode::not_found) return json::object();
    if (!text) return text.error();
    auto document = json::parse(*text);
    if (!document) return document.error().within(path.string());
    const json::value* logins =
        document->is_object() ? json::find(document->get_object(), kLogins) : nullptr;
    if (!logins || !logins->is_object()) {
        return Error(ErrorCode::invalid_argument, path.string() + ": not a file of this program");
    }
    return logins->get_object();
}

Status write(const std::filesystem::path& path, json::object logins) {
    std::error_code failure;
    std::filesystem::path directory = path.parent_path();
    if (!std::filesystem::exists(directory, failure)) {
        std::filesystem::create_directories(directory, failure);
        if (failure) return Error::from_errno(failure.value(), "make " + directory.string());
        ::chmod(directory.c_str(), 0700);
    }
    json::object document;
    document[kLogins] = std::move(logins);
    // Makes it with mode 0600.
    return image::write_file_atomically(path, json::serialize(document) + "\n");
}

}  // namespace

Result<std::optional<Credential>> CredentialFile::find(const std::string& registry) const {
    std::optional<Credential> none;
    auto logins = read(path_);
    if (!logins) return logins.error();
    const json::value* login = json::find(*logins, registry);
    if (!login) return none;
    if (!login->is_object()) {
        return Error(ErrorCode::invalid_argument,
                     path_.string() + ": " + registry + ": must be an object");
    }
    auto username = json::get_string(login->get_object(), "username");
    auto password = json::get_string(login->get_object(), "password");
    if (!username) return username.error().within(path_.string());
    if (!password) return password.error().within(path_.string());
    return std::optional(Credential(username->value_or(""), password->value_or("")));
}

Status CredentialFile::put(const std::string& registry, const Credential& credential) const {
    auto logins = read(path_);
    if (!logins) return logins.error();
    json::object login;
    login["username"] = credential.username;
    login["password"] = credential.password;
    (*logins)[registry] = std::move(login);
    return write(path_, std::move(*logins));
}

Result<bool> CredentialFile::remove(const std::string& registry) const {
    auto logins = read(path_);
    if (!logins) return logins.error();
    if (logins->erase(registry) == 0) return false;
    if (auto ok = write(path_, std::move(*logins)); !ok) return ok.error();
    return true;
}

}  // namespace opensandbox::registry
