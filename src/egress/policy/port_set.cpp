#include "egress/policy/port_set.hpp"

#include <algorithm>

namespace opensandbox::egress {
namespace {

using Ranges = std::vector<PortRange>;

constexpr PortRange kAllPorts{0, 65535};

/// Both lists in order and apart; the result, too.
Ranges unite(const Ranges& a, const Ranges& b) {
    Ranges all;
    all.reserve(a.size() + b.size());
    std::ranges::merge(a, b, std::back_inserter(all));
    Ranges out;
    for (const PortRange& range : all) {
        if (!out.empty() && range.first <= std::uint32_t{out.back().last} + 1) {
            out.back().last = std::max(out.back().last, range.last);
        } else {
            out.push_back(range);
        }
    }
    return out;
}

/// What is in `a` and not in `b`.
Ranges without(const Ranges& a, const Ranges& b) {
    Ranges out;
    auto cut = b.begin();
    for (const PortRange& range : a) {
        std::uint32_t from = range.first;
        while (cut != b.end() && cut->last < from)
            ++cut;
        for (auto c = cut; c != b.end() && c->first <= range.last; ++c) {
            if (c->first > from) {
                out.emplace_back(static_cast<std::uint16_t>(from),
                                 static_cast<std::uint16_t>(c->first - 1));
            }
            from = std::uint32_t{c->last} + 1;
        }
        if (from <= range.last) out.emplace_back(static_cast<std::uint16_t>(from), range.last);
    }
    return out;
}

bool holds(const Ranges& ranges, std::uint16_t port) {
    const auto next = std::ranges::upper_bound(ranges, port, {}, &PortRange::first);
    return next != ranges.begin() && std::prev(next)->last >= port;
}

bool is_full(const Ranges& ranges) {
    return ranges.size() == 1 && ranges.front() == kAllPorts;
}

void append_text(std::string& out, std::string_view name, const Ranges& ranges) {
    if (ranges.empty()) return;
    if (!out.empty()) out += ' ';
    out += name;
    out += ' ';
    for (const PortRange& range : ranges) {
        if (&range != &ranges.front()) out += ',';
        out += std::to_string(range.first);
        if (range.last != range.first) out += '-' + std::to_string(range.last);
    }
}

}  // namespace

bool Scope::covers(Transport transport, std::uint16_t port) const {
    if (transport == Transport::other) return other;
    return (transport == Transport::tcp ? tcp : udp) && port >= ports.first && port <= ports.last;
}

std::string Scope::to_string() const {
    if (is_all()) return "";
    std::string text = ":" + std::to_string(ports.first);
    if (ports.last != ports.first) text += "-" + std::to_string(ports.last);
    if (!udp) text += "/tcp";
    if (!tcp) text += "/udp";
    return text;
}

PortSet PortSet::all() {
    return of(Scope());
}

PortSet PortSet::of(const Scope& scope) {
    PortSet set;
    set.other_ = scope.other;
    if (scope.tcp) set.tcp_.push_back(scope.ports);
    if (scope.udp) set.udp_.push_back(scope.ports);
    return set;
}

void PortSet::append(Transport transport, PortRange ports) {
    Ranges& ranges = transport == Transport::tcp ? tcp_ : udp_;
    if (!ranges.empty() && ranges.back().last + 1 == ports.first) {
        ranges.back().last = ports.last;
    } else {
        ranges.push_back(ports);
    }
}

void PortSet::add(const PortSet& other) {
    other_ = other_ || other.other_;
    tcp_ = unite(tcp_, other.tcp_);
    udp_ = unite(udp_, other.udp_);
}

void PortSet::remove(const PortSet& other) {
    other_ = other_ && !other.other_;
    tcp_ = without(tcp_, other.tcp_);
    udp_ = without(udp_, other.udp_);
}

void PortSet::keep(const PortSet& other) {
    PortSet rest = *this;
    rest.remove(other);
    remove(rest);
}

bool PortSet::is_all() const {
    return other_ && is_full(tcp_) && is_full(udp_);
}

bool PortSet::contains(Transport transport, std::uint16_t port) const {
    if (transport == Transport::other) return other_;
    return holds(transport == Transport::tcp ? tcp_ : udp_, port);
}

bool PortSet::contains(const PortSet& other) const {
    PortSet rest = other;
    rest.remove(*this);
    return rest.empty();
}

std::string PortSet::to_string() const {
    if (is_all()) return "all";
    if (empty()) return "none";
    std::string out;
    append_text(out, "tcp", tcp_);
    append_text(out, "udp", udp_);
    if (other_) out += out.empty() ? "other" : " other";
    return out;
}

}  // namespace opensandbox::egress
