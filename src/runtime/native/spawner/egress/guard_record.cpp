#include "runtime/native/spawner/egress/guard_record.hpp"

#include "base/identifier.hpp"
#include "base/log.hpp"
#include "base/replace_file.hpp"
#include "json/document.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <unistd.h>

namespace opensandbox::runtime::native {

namespace fs = std::filesystem;

std::string format_guard(const GuardRecord& record) {
    json::object environment;
    for (const auto& [name, value] : record.egress.environment)
        environment[name] = value;
    json::array addresses;
    for (const std::string& address : record.addresses)
        addresses.emplace_back(address);
    json::object out;
    out["id"] = record.id;
    out["link"] = record.link;
    out["addresses"] = std::move(addresses);
    out["policy"] = record.egress.policy;
    out["token"] = record.egress.token;
    out["environment"] = std::move(environment);
    return json::serialize(out);
}

Result<GuardRecord> parse_guard(std::string_view text) {
    auto document = json::parse(text);
    if (!document) return document.error();
    if (!document->is_object()) return Error(ErrorCode::invalid_argument, "must be an object");
    const json::object& object = document->get_object();
    GuardRecord out;
    Status status;
    const auto take = [&](auto found, auto& into) {
        if (!found) {
            if (status) status = found.error();
        } else if (*found) {
            into = std::move(**found);
        }
    };
    take(json::get_string(object, "id"), out.id);
    take(json::get_string(object, "link"), out.link);
    take(json::get_strings(object, "addresses"), out.addresses);
    take(json::get_string(object, "policy"), out.egress.policy);
    take(json::get_string(object, "token"), out.egress.token);
    take(json::get_string_map(object, "environment"), out.egress.environment);
    if (!status) return status.error();
    if (!is_uuid(out.id)) return Error(ErrorCode::invalid_argument, "id: must be a UUID");
    if (out.link.empty()) return Error(ErrorCode::invalid_argument, "link: is missing");
    if (out.addresses.empty()) return Error(ErrorCode::invalid_argument, "addresses: are missing");
    out.egress.wanted = true;
    return out;
}

Status GuardRecords::write(const GuardRecord& record) const {
    if (::mkdir(directory_.c_str(), 0700) < 0 && errno != EEXIST) {
        return last_error("mkdir " + directory_.string());
    }
    return replace_file(directory_ / record.id, format_guard(record));
}

void GuardRecords::remove(const std::string& id) const {
    ::unlink((directory_ / id).c_str());
}

std::vector<GuardRecord> GuardRecords::read_all() const {
    std::vector<GuardRecord> out;
    std::error_code none;
    for (const auto& file : fs::directory_iterator(directory_, none)) {
        auto record = parse_guard(read_file_or_empty(file.path()));
        if (record && record->id == file.path().filename().string()) {
            out.push_back(std::move(*record));
            continue;
        }
        log::warn("the record of a guarded sandbox is unreadable and dropped",
                  {{"path", file.path().string()}});
        ::unlink(file.path().c_str());
    }
    return out;
}

}  // namespace opensandbox::runtime::native
