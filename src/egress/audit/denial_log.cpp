#include "egress/audit/denial_log.hpp"

#include "base/clock.hpp"
#include "base/json_string.hpp"

#include <algorithm>

namespace opensandbox::egress {

namespace {

void append_member(std::string& out, std::string_view name, std::string_view value) {
    if (value.empty()) return;
    out += ",\"" + std::string(name) + "\":";
    append_json_string(out, value);
}

void append_record(std::string& out, const DenialRecord& record) {
    out += "{\"sequence\":" + std::to_string(record.sequence);
    append_member(out, "time",
                  to_rfc3339(std::chrono::time_point_cast<std::chrono::microseconds>(record.time)));
    append_member(out, "kind", to_string(record.kind));
    append_member(out, "target", record.target);
    if (record.port != 0) out += ",\"port\":" + std::to_string(record.port);
    append_member(out, "protocol", record.protocol);
    append_member(out, "reason", record.reason);
    out += '}';
}

}  // namespace

std::string_view to_string(DenialRecord::Kind kind) {
    switch (kind) {
        case DenialRecord::Kind::name: return "name";
        case DenialRecord::Kind::address: return "address";
        default: return "request";
    }
}

const DenialRecord& DenialLog::add(DenialRecord record) {
    record.sequence = ++last_;
    ++totals_[static_cast<std::size_t>(record.kind)];
    if (records_.size() >= capacity_) records_.pop_front();
    return records_.emplace_back(std::move(record));
}

DenialLog::Page DenialLog::since(std::uint64_t since, std::size_t limit) const {
    Page page;
    const std::uint64_t first = last_ - records_.size() + 1;  // the oldest that is kept
    const std::uint64_t from = since >= last_ ? last_ + 1 : std::max(since + 1, first);
    if (since < last_) page.lost = from - since - 1;
    for (std::uint64_t at = from; at <= last_ && page.records.size() < limit; ++at) {
        page.records.push_back(records_[at - first]);
    }
    page.next = page.records.empty() ? last_ : page.records.back().sequence;
    return page;
}

std::string to_json(const DenialLog::Page& page) {
    std::string out = "{\"denials\":[";
    for (const DenialRecord& record : page.records) {
        if (&record != &page.records.front()) out += ',';
        append_record(out, record);
    }
    out += "],\"next\":" + std::to_string(page.next) + ",\"lost\":" + std::to_string(page.lost);
    return out + "}\n";
}

}  // namespace opensandbox::egress
