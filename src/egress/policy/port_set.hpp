#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace opensandbox::egress {

/// What carries a packet's payload; ports exist for the first two.
enum class Transport : std::uint8_t { tcp, udp, other };

/// First and last port, both included.
struct PortRange {
    std::uint16_t first;
    std::uint16_t last;
    friend auto operator<=>(const PortRange&, const PortRange&) = default;
};

/// What a rule is limited to. Without a limit it covers every port and protocol, ICMP too; with a
/// port but no protocol, TCP and UDP.
struct Scope {
    Scope() = default;
    Scope(bool t, bool u, PortRange p) : tcp(t), udp(u), other(false), ports(p) {}
    bool tcp = true;
    bool udp = true;
    bool other = true;
    PortRange ports{0, 65535};

    [[nodiscard]] bool is_all() const { return other; }
    /// `port` counts for TCP and UDP only.
    [[nodiscard]] bool covers(Transport transport, std::uint16_t port) const;
    /// "" for all, ":443", ":8000-8100/tcp": as a target ends.
    [[nodiscard]] std::string to_string() const;
    friend auto operator<=>(const Scope&, const Scope&) = default;
};

/// A set of ports of TCP and of UDP, and whether the protocols without ports belong to it.
class PortSet {
  public:
    /// Nothing.
    PortSet() = default;
    static PortSet all();
    static PortSet of(const Scope& scope);

    /// Adds ports behind all that it holds of TCP, or of UDP.
    void append(Transport transport, PortRange ports);
    void append_other() { other_ = true; }
    void add(const PortSet& other);
    void remove(const PortSet& other);
    /// Keeps what both hold.
    void keep(const PortSet& other);

    [[nodiscard]] bool empty() const { return !other_ && tcp_.empty() && udp_.empty(); }
    [[nodiscard]] bool is_all() const;
    [[nodiscard]] bool contains(Transport transport, std::uint16_t port) const;
    /// Whether it holds all of `other`.
    [[nodiscard]] bool contains(const PortSet& other) const;

    /// In order, apart from each other by at least one port.
    [[nodiscard]] const std::vector<PortRange>& tcp() const { return tcp_; }
    [[nodiscard]] const std::vector<PortRange>& udp() const { return udp_; }
    /// ICMP and the like.
    [[nodiscard]] bool other() const { return other_; }
    /// "all", "none" or "tcp 80,443 udp 53 other", for logs.
    [[nodiscard]] std::string to_string() const;

    friend bool operator==(const PortSet&, const PortSet&) = default;

  private:
    bool other_ = false;
    std::vector<PortRange> tcp_;
    std::vector<PortRange> udp_;
};

}  // namespace opensandbox::egress
