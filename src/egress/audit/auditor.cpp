#include "egress/audit/auditor.hpp"

#include "base/log.hpp"
#include "net/dns/message.hpp"

#include <netinet/in.h>

#include <utility>

namespace opensandbox::egress {

namespace {

std::string protocol_name(std::uint8_t protocol) {
    switch (protocol) {
        case IPPROTO_TCP: return "tcp";
        case IPPROTO_UDP: return "udp";
        case IPPROTO_ICMP:
        case IPPROTO_ICMPV6: return "icmp";
        default: return std::to_string(protocol);
    }
}

std::string type_name(std::uint16_t type) {
    switch (type) {
        case net::dns::kTypeA: return "A";
        case net::dns::kTypeAaaa: return "AAAA";
        default: return "TYPE" + std::to_string(type);
    }
}

}  // namespace

Auditor::Auditor(AuditSettings settings)
    : settings_(std::move(settings)),
      log_(settings_.kept),
      budgets_{LogBudget(settings_.lines_per_second, settings_.line_burst),
               LogBudget(settings_.lines_per_second, settings_.line_burst),
               LogBudget(settings_.lines_per_second, settings_.line_burst)},
      passed_budget_(settings_.lines_per_second, settings_.line_burst) {}

void Auditor::deny(DenialRecord record) {
    const DenialRecord& kept = log_.add(std::move(record));
    if (webhook_) webhook_->tell(kept.target, kept.time);
    LogBudget& budget = budgets_[static_cast<std::size_t>(kept.kind)];
    const auto omitted = budget.admit(std::chrono::steady_clock::now());
    if (!omitted) return;
    log::warn("egress denied", {{"opensandbox.event", "egress.denied"},
                                {"kind", to_string(kept.kind)},
                                {"target.host", kept.target},
                                {"target.port", kept.port},
                                {"protocol", kept.protocol},
                                {"reason", kept.reason},
                                {"sequence", kept.sequence},
                                {"sandbox_id", settings_.sandbox_id},
                                {"omitted", *omitted}});
}

void Auditor::on_name(const dns::Denial& denial) {
    DenialRecord record(DenialRecord::Kind::name, denial.name, denial.reason);
    record.protocol = type_name(denial.type);
    record.time = denial.time;
    deny(std::move(record));
}

void Auditor::on_packet(const net::LoggedPacket& packet) {
    lost_packets_ += packet.lost;
    DenialRecord record(DenialRecord::Kind::address, packet.destination.to_string(),
                        explain_ ? explain_(packet) : packet.prefix);
    record.port = packet.destination_port;
    record.protocol = protocol_name(packet.protocol);
    record.time = packet.time;
    deny(std::move(record));
}

void Auditor::note_selection(const ConnectionRecord& record) {
    if (record.selection.empty()) return;
    const bool passed = record.outcome == Outcome::passed_through;
    const std::string_view decision = passed                              ? "passthrough"
                                      : record.outcome == Outcome::denied ? "deny"
                                                                          : "decrypt";
    ++selections_[{decision, record.selection}];
    if (!passed) return;
    const auto omitted = passed_budget_.admit(std::chrono::steady_clock::now());
    if (!omitted) return;
    log::info("connection not intercepted", {{"opensandbox.event", "egress.outbound"},
                                             {"target.host", record.host},
                                             {"target.ip", record.target.address().to_string()},
                                             {"reason", record.selection},
                                             {"sandbox_id", settings_.sandbox_id},
                                             {"omitted", *omitted}});
}

void Auditor::on_connection(const ConnectionRecord& record) {
    note_selection(record);
    if (record.outcome == Outcome::failed) {
        log::info("intercepted connection failed",
                  {{"opensandbox.event", "egress.outbound"},
                   {"target.host", record.host},
                   {"target.ip", record.target.address().to_string()},
                   {"error", record.reason},
                   {"sandbox_id", settings_.sandbox_id}});
        return;
    }
    if (record.outcome != Outcome::denied) return;
    std::string host(record.host);
    if (host.empty()) host = record.target.address().to_string();
    DenialRecord denied(DenialRecord::Kind::request, std::move(host), std::string(record.reason));
    denied.port = record.target.port();
    denied.protocol = record.scheme.empty() ? "tcp" : std::string(record.scheme);
    deny(std::move(denied));
}

void Auditor::on_request(const RequestRecord& record) {
    if (record.outcome != Outcome::denied) return;
    std::string host(record.host);
    if (host.empty()) host = record.target.address().to_string();
    DenialRecord denied(DenialRecord::Kind::request, std::move(host), std::string(record.reason));
    denied.port = record.target.port();
    denied.protocol = std::string(record.scheme);
    deny(std::move(denied));
}

void Auditor::tell_omitted() {
    for (const auto kind :
         {DenialRecord::Kind::name, DenialRecord::Kind::address, DenialRecord::Kind::request}) {
        const std::uint64_t omitted = budgets_[static_cast<std::size_t>(kind)].take_omitted();
        if (omitted == 0) continue;
        log::warn("egress denied more than is written here",
                  {{"opensandbox.event", "egress.denied"},
                   {"kind", to_string(kind)},
                   {"sandbox_id", settings_.sandbox_id},
                   {"omitted", omitted}});
    }
}

namespace {

Awaitable<void> read_packets(net::PacketLog& packets,
                             std::function<void(const net::LoggedPacket& packet)> seen) {
    while (true) {
        const Result<net::LoggedPacket> packet = co_await packets.next();
        if (packet) {
            seen(*packet);
            continue;
        }
        if (packet.error().code() == ErrorCode::cancelled) co_return;
        log::warn("the log of refused packets failed", {{"error", packet.error().message()}});
        co_await net::sleep_for(std::chrono::seconds(1));
    }
}

}  // namespace

std::unique_ptr<net::PacketLog> follow_packets(
    const asio::any_io_executor& executor, std::uint16_t group,
    std::function<void(const net::LoggedPacket& packet)> seen) {
    auto opened = net::PacketLog::open(executor, group);
    if (!opened) {
        log::warn("refused packets are not told of", {{"error", opened.error().message()}});
        return nullptr;
    }
    net::spawn(executor, read_packets(**opened, std::move(seen)), "refused packets");
    return std::move(*opened);
}

}  // namespace opensandbox::egress
