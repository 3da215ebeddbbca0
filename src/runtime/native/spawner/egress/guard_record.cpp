#include "runtime/native/spawner/egress/guard_record.hpp"

#include "base/identifier.hpp"
#include "base/log.hpp"
#include "base/replace_file.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/records/record_fields.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <unistd.h>

namespace opensandbox::runtime::native {

namespace fs = std::filesystem;

namespace {

constexpr auto kGuardMembers = [](auto& walker, auto& record) {
    walker.put("id", record.id);
    walker.put("link", record.link);
    walker.put("addresses", record.addresses);
    walker.put("policy", record.egress.policy);
    walker.put("token", record.egress.token);
    walker.put("environment", record.egress.environment);
};

}  // namespace

std::string format_guard(const GuardRecord& record) {
    return json::serialize(json::write_fields(record, kGuardMembers));
}

Result<GuardRecord> parse_guard(std::string_view text) {
    auto document = json::parse(text);
    if (!document) return document.error();
    if (!document->is_object()) return Error(ErrorCode::invalid_argument, "must be an object");
    auto read = read_record<GuardRecord>(document->get_object(), kGuardMembers);
    if (!read) return read.error();
    GuardRecord& out = *read;
    if (!is_uuid(out.id)) return Error(ErrorCode::invalid_argument, "id: must be a UUID");
    if (out.link.empty()) return Error(ErrorCode::invalid_argument, "link: is missing");
    if (out.addresses.empty()) return Error(ErrorCode::invalid_argument, "addresses: are missing");
    out.egress.wanted = true;
    return read;
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
