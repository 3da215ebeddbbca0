#include "telemetry/export_ledger.hpp"

namespace opensandbox::telemetry {

void ExportLedger::begin(Timestamp now) {
    begun_.emplace();
    begun_at_ = now;
}

void ExportLedger::taken() {
    if (!begun_) return;
    last_ = std::move(*begun_);
    begun_.reset();
    since_ = begun_at_;
}

const ExportLedger::Seen* ExportLedger::note(std::string_view series, Seen total) {
    std::string key(series);
    auto before = last_.find(key);
    if (begun_) begun_->insert_or_assign(std::move(key), std::move(total));
    return before == last_.end() ? nullptr : &before->second;
}

std::optional<std::int64_t> ExportLedger::difference(std::string_view series, std::int64_t total) {
    Seen seen;
    seen.whole = total;
    const Seen* before = note(series, std::move(seen));
    if (!before || total < before->whole) return total;
    if (total == before->whole) return std::nullopt;
    return total - before->whole;
}

std::optional<double> ExportLedger::difference(std::string_view series, double total) {
    Seen seen;
    seen.real = total;
    const Seen* before = note(series, std::move(seen));
    if (!before || total < before->real) return total;
    if (total == before->real) return std::nullopt;
    return total - before->real;
}

std::optional<Histogram> ExportLedger::difference(std::string_view series, const Histogram& total) {
    Seen seen;
    seen.histogram = total;
    const Seen* before = note(series, std::move(seen));
    if (!before || !before->histogram || total.count() < before->histogram->count()) return total;
    if (total.count() == before->histogram->count()) return std::nullopt;
    return total.since(*before->histogram);
}

}  // namespace opensandbox::telemetry
