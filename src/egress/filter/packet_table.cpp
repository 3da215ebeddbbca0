#include "egress/filter/packet_table.hpp"

#include "base/log.hpp"

namespace opensandbox::egress {

namespace {

template <class Table>
PacketTable::Refusals refusals_of(Table& table) {
    PacketTable::Refusals refusals;
    for (const rules::Reason reason : rules::all_reasons()) {
        const Result<std::uint64_t> refused = table.refused(reason);
        if (refused) refusals.emplace_back(rules::to_string(reason), *refused);
    }
    return refusals;
}

class HostPackets final : public PacketTable {
  public:
    explicit HostPackets(rules::HostTable table) : table_(std::move(table)) {}

    Result<Cut> add(const rules::GuardedSandbox& sandbox, rules::PolicyRules rules,
                    const StillAllowed& still_allowed) override {
        return table_.add(sandbox, std::move(rules), still_allowed);
    }
    Result<Cut> set_policy(const std::string& link, rules::PolicyRules rules,
                           const StillAllowed& still_allowed) override {
        return table_.set_policy(link, std::move(rules), still_allowed);
    }
    Result<Cut> remove(const std::string& link) override { return table_.remove_sandbox(link); }
    Status learn(const std::string& link, const std::string& name,
                 const std::vector<net::Address>& addresses,
                 const std::vector<rules::Scope>& scopes, std::chrono::seconds lifetime) override {
        return table_.learn(link, name, addresses, scopes, lifetime);
    }
    void tend() override { table_.expire(); }

    std::optional<Cut> cut(const std::string& link) const override { return table_.cut(link); }
    const rules::LearnedAddresses& learned() const override { return table_.learned(); }
    bool guards(const std::string& link) const override { return table_.guards(link); }
    std::vector<std::string> unclaimed() const override { return table_.unclaimed(); }
    Refusals refusals() override {
        Refusals refusals = refusals_of(table_);
        const Result<std::uint64_t> spoofed = table_.spoofed();
        if (spoofed) refusals.emplace_back("spoofed", *spoofed);
        return refusals;
    }

  private:
    rules::HostTable table_;
};

class SidecarPackets final : public PacketTable {
  public:
    explicit SidecarPackets(rules::SidecarTable table) : table_(std::move(table)) {}

    Result<Cut> add(const rules::GuardedSandbox&, rules::PolicyRules rules,
                    const StillAllowed& still_allowed) override {
        return table_.set_policy(std::move(rules), still_allowed);
    }
    Result<Cut> set_policy(const std::string&, rules::PolicyRules rules,
                           const StillAllowed& still_allowed) override {
        return table_.set_policy(std::move(rules), still_allowed);
    }
    Result<Cut> remove(const std::string&) override {
        return Error(ErrorCode::unsupported, "a sidecar's sandbox goes with its table");
    }
    Status learn(const std::string&, const std::string& name,
                 const std::vector<net::Address>& addresses,
                 const std::vector<rules::Scope>& scopes, std::chrono::seconds lifetime) override {
        return table_.learn(name, addresses, scopes, lifetime);
    }
    void tend() override {
        table_.expire();
        auto links = rules::outer_links();
        if (!links) return;
        if (Status set = table_.set_links(std::move(*links)); !set) {
            log::warn("raw frames at new links are not stopped",
                      {{"error", set.error().message()}});
        }
    }

    std::optional<Cut> cut(const std::string&) const override { return table_.cut(); }
    const rules::LearnedAddresses& learned() const override { return table_.learned(); }
    bool guards(const std::string& link) const override { return link.empty(); }
    std::vector<std::string> unclaimed() const override { return {}; }
    Refusals refusals() override { return refusals_of(table_); }

  private:
    rules::SidecarTable table_;
};

}  // namespace

std::unique_ptr<PacketTable> packet_table(rules::HostTable table) {
    return std::make_unique<HostPackets>(std::move(table));
}

std::unique_ptr<PacketTable> packet_table(rules::SidecarTable table) {
    return std::make_unique<SidecarPackets>(std::move(table));
}

}  // namespace opensandbox::egress
