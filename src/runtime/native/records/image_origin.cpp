#include "runtime/native/records/image_origin.hpp"

namespace opensandbox::runtime::native {

namespace {

/// Collects members and remembers the first that is wrong.
class Members {
  public:
    explicit Members(const json::object& object) : object_(object) {}

    void read(std::string_view name, std::string& into) {
        keep(json::get_string(object_, name), into);
    }
    void read(std::string_view name, std::vector<std::string>& into) {
        keep(json::get_strings(object_, name), into);
    }
    void read(std::string_view name, std::vector<std::pair<std::string, std::string>>& into) {
        keep(json::get_string_map(object_, name), into);
    }
    [[nodiscard]] const Status& status() const { return status_; }

  private:
    template <class T>
    void keep(Result<std::optional<T>> found, T& into) {
        if (!found) {
            if (status_) status_ = found.error();
        } else if (*found) {
            into = std::move(**found);
        }
    }

    const json::object& object_;
    Status status_;
};

}  // namespace

json::array to_json(const std::vector<std::string>& list) {
    json::array out;
    out.reserve(list.size());
    for (const std::string& text : list)
        out.emplace_back(text);
    return out;
}

json::object to_json(const ImageOrigin& origin) {
    json::object env;
    for (const auto& [name, value] : origin.config.env)
        env[name] = value;
    json::object out;
    out["reference"] = origin.reference;
    out["digest"] = origin.digest;
    out["layers"] = to_json(origin.layers);
    out["usr"] = origin.usr;
    out["env"] = std::move(env);
    out["user"] = origin.config.user;
    out["workingDirectory"] = origin.config.working_directory;
    out["entrypoint"] = to_json(origin.config.entrypoint);
    out["cmd"] = to_json(origin.config.cmd);
    return out;
}

Result<ImageOrigin> parse_origin(const json::object& object) {
    ImageOrigin origin;
    Members members(object);
    members.read("reference", origin.reference);
    members.read("digest", origin.digest);
    members.read("layers", origin.layers);
    members.read("usr", origin.usr);
    members.read("env", origin.config.env);
    members.read("user", origin.config.user);
    members.read("workingDirectory", origin.config.working_directory);
    members.read("entrypoint", origin.config.entrypoint);
    members.read("cmd", origin.config.cmd);
    if (!members.status()) return members.status().error();
    return origin;
}

}  // namespace opensandbox::runtime::native
