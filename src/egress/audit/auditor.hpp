#pragma once

#include "egress/audit/denial_log.hpp"
#include "egress/audit/denial_webhook.hpp"
#include "egress/audit/log_budget.hpp"
#include "egress/dns/denial.hpp"
#include "egress/intercept/core/audit.hpp"
#include "net/packet_log.hpp"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace opensandbox::egress {

struct AuditSettings {
    std::string sandbox_id;
    double lines_per_second = 20;  ///< of each source: names, packets, requests
    double line_burst = 200;
    std::size_t kept = 1024;  ///< denials that /policy/denials knows
};

/// Sees every denial: keeps it, writes it to the log as far as its source has not written too much
/// (what was left out is counted), and tells the webhook. One event loop.
class Auditor final : public InterceptAudit {
  public:
    explicit Auditor(AuditSettings settings);

    /// Null: nobody is told.
    void set_webhook(std::unique_ptr<DenialWebhook> webhook) { webhook_ = std::move(webhook); }
    /// For packets, whose log has only the filter's reason: which rule it was. May be empty.
    using Explain = std::function<std::string(const net::LoggedPacket& packet)>;
    void set_explanation(Explain explain) { explain_ = std::move(explain); }

    void on_name(const dns::Denial& denial);
    void on_packet(const net::LoggedPacket& packet);
    void on_connection(const ConnectionRecord& record) override;
    void on_request(const RequestRecord& record) override;
    /// Writes how many lines were left out, where nothing was written since; to be called every few
    /// seconds.
    void tell_omitted();

    [[nodiscard]] const DenialLog& denials() const { return log_; }
    [[nodiscard]] const DenialWebhook* webhook() const { return webhook_.get(); }
    /// Packets whose refusal was not told of, since there were too many.
    /// How many TLS connections were decided on, by decision ("decrypt", "passthrough", "deny") and
    /// reason (selection.hpp), where credentials decide what is intercepted.
    using Selections = std::map<std::pair<std::string_view, std::string_view>, std::uint64_t>;
    [[nodiscard]] const Selections& selections() const { return selections_; }
    [[nodiscard]] std::uint64_t lost_packets() const { return lost_packets_; }

  private:
    void deny(DenialRecord record);
    void note_selection(const ConnectionRecord& record);

    AuditSettings settings_;
    DenialLog log_;
    LogBudget budgets_[3];
    LogBudget passed_budget_;
    Selections selections_;
    std::unique_ptr<DenialWebhook> webhook_;
    Explain explain_;
    std::uint64_t lost_packets_ = 0;
};

/// Reads the packet log of a group until it is closed; null, with a warning, when there is none.
/// Once closed it is still needed while handlers of the loop are ready.
std::unique_ptr<net::PacketLog> follow_packets(
    const asio::any_io_executor& executor, std::uint16_t group,
    std::function<void(const net::LoggedPacket& packet)> seen);

}  // namespace opensandbox::egress
