#include "lifecycle/quota_ledger.hpp"

#include <utility>

namespace opensandbox::lifecycle {
namespace {

std::string cores(std::int64_t millicores) {
    if (millicores % 1000 == 0) return std::to_string(millicores / 1000);
    return std::to_string(millicores) + "m";
}

std::string mebibytes(std::int64_t bytes) {
    constexpr std::int64_t kMebi = 1 << 20;
    if (bytes % kMebi == 0) return std::to_string(bytes / kMebi) + "Mi";
    return std::to_string(bytes) + " bytes";
}

/// One ceiling and what stands against it.
struct Ceiling {
    std::string_view name;
    std::optional<std::int64_t> limit;
    std::int64_t used;
    std::int64_t wanted;
    std::string (*text)(std::int64_t);
    const char* field;  ///< of the request; null when it need not be stated
};

std::string count(std::int64_t number) {
    return std::to_string(number);
}

Status check(const Ceiling& ceiling) {
    if (!ceiling.limit) return {};
    std::string limit = ceiling.text(*ceiling.limit);
    if (ceiling.field && ceiling.wanted == 0) {
        return Error(ErrorCode::invalid_argument, "SANDBOX::INVALID_PARAMETER",
                     std::string(ceiling.field) + ": must be given, since the quota " +
                         std::string(ceiling.name) + " = " + limit + " counts it.");
    }
    // Subtraction cannot overflow: none of them is negative.
    if (ceiling.used <= *ceiling.limit && ceiling.wanted <= *ceiling.limit - ceiling.used)
        return {};
    return Error(ErrorCode::resource_exhausted, "SANDBOX::QUOTA_EXCEEDED",
                 "Quota " + std::string(ceiling.name) + " = " + limit + " is used up: " +
                     ceiling.text(ceiling.used) + " in use, " + ceiling.text(ceiling.wanted) +
                     " wanted. Delete sandboxes, or let them expire, and try again.");
}

Usage of(const store::SandboxRecord& record) {
    return {1, record.cpu_millicores, record.memory_bytes};
}

}  // namespace

Usage& Usage::operator+=(const Usage& other) {
    sandboxes += other.sandboxes;
    cpu_millicores += other.cpu_millicores;
    memory_bytes += other.memory_bytes;
    return *this;
}

QuotaLedger::Hold::Hold(std::shared_ptr<Claims> claims, Claim claim) : claims_(std::move(claims)) {
    at_ = claims_->insert(claims_->end(), std::move(claim));
}

QuotaLedger::Hold::Hold(Hold&& other) noexcept
    : claims_(std::move(other.claims_)), at_(other.at_) {}

QuotaLedger::Hold& QuotaLedger::Hold::operator=(Hold&& other) noexcept {
    if (this == &other) return *this;
    release();
    claims_ = std::move(other.claims_);
    at_ = other.at_;
    return *this;
}

void QuotaLedger::Hold::release() {
    if (auto claims = std::exchange(claims_, nullptr)) claims->erase(at_);
}

Usage QuotaLedger::usage(const std::string& tenant, const SandboxIndex& index) const {
    Usage sum;
    index.for_each([&](const store::SandboxRecord& record) {
        if (record.tenant != tenant || record.pool_idle) return;
        Usage one = of(record);
        if (!model::is_alive(record.sandbox.status.state)) one = {1, 0, 0};
        sum += one;
    });
    for (const Claim& claim : *claims_) {
        if (claim.tenant == tenant) sum += claim.usage;
    }
    return sum;
}

Result<QuotaLedger::Hold> QuotaLedger::claim(const store::SandboxRecord& record,
                                             const model::Quota& quota, const SandboxIndex& index) {
    if (quota == model::Quota()) return Hold();
    Usage used = usage(record.tenant, index);
    Usage wanted = of(record);
    const Ceiling ceilings[] = {
        {"max_sandboxes", quota.max_sandboxes, used.sandboxes, 1, count, nullptr},
        {"max_cpu", quota.max_cpu_millicores, used.cpu_millicores, wanted.cpu_millicores, cores,
         "resourceLimits.cpu"},
        {"max_memory", quota.max_memory_bytes, used.memory_bytes, wanted.memory_bytes, mebibytes,
         "resourceLimits.memory"},
    };
    for (const Ceiling& ceiling : ceilings) {
        if (auto ok = check(ceiling); !ok) return ok.error();
    }
    return Hold(claims_, Claim{record.tenant, wanted});
}

}  // namespace opensandbox::lifecycle
