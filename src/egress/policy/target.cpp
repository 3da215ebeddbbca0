#include "egress/policy/target.hpp"

#include "egress/policy/blank.hpp"

#include <algorithm>
#include <charconv>

namespace opensandbox::egress {
namespace {

constexpr std::size_t kMaxName = 253;
constexpr std::size_t kMaxLabel = 63;

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

std::optional<std::uint16_t> parse_port(std::string_view text) {
    unsigned port = 0;
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), port);
    if (ec != std::errc() || end != text.data() + text.size()) return std::nullopt;
    if (port < 1 || port > 65535) return std::nullopt;
    return static_cast<std::uint16_t>(port);
}

/// What follows a target's colon: "443", "8000-8100/tcp".
Result<Scope> parse_scope(std::string_view text) {
    const auto slash = text.find('/');
    const std::string_view ports = text.substr(0, slash);
    bool tcp = true;
    bool udp = true;
    if (slash != text.npos) {
        const std::string protocol = lower_case(text.substr(slash + 1));
        if (protocol != "tcp" && protocol != "udp") {
            return invalid("the protocol behind a port must be tcp or udp");
        }
        tcp = protocol == "tcp";
        udp = !tcp;
    }
    const auto dash = ports.find('-');
    const auto first = parse_port(ports.substr(0, dash));
    const auto last = dash == ports.npos ? first : parse_port(ports.substr(dash + 1));
    if (!first || !last) return invalid("a port must be a number from 1 to 65535");
    if (*first > *last) return invalid("the first port of a range must not be above the last");
    return Scope(tcp, udp, PortRange(*first, *last));
}

/// A label as a wrongly written address has it: all digits, or hexadecimal.
bool is_number(std::string_view label) {
    if (!label.starts_with("0x") && !label.starts_with("0X")) {
        return std::ranges::all_of(label, is_digit);
    }
    return label.find_first_not_of("0123456789abcdefABCDEF", 2) == label.npos;
}

Status check_label(std::string_view label) {
    if (label.empty()) return invalid("a name must not have empty labels");
    if (label.size() > kMaxLabel) {
        return invalid("a label of a name must not be longer than 63 characters");
    }
    for (const char c : label) {
        if (static_cast<unsigned char>(c) >= 0x80) {
            return invalid("a name must be written in its ASCII form (punycode, xn--...)");
        }
        if (c == '*') return invalid("a * stands for whole labels, at the front: *.example.com");
        if (!is_letter(c) && !is_digit(c) && c != '-' && c != '_') {
            return invalid(
                "a name has letters, digits, hyphens, underscores and dots, nothing "
                "else");
        }
    }
    return {};
}

/// The parts that a text is split into before they are read.
struct Parts {
    std::string_view host;   ///< without brackets
    std::string_view scope;  ///< behind the colon
    bool scoped = false;
    bool bracketed = false;
};

Result<Parts> split(std::string_view text) {
    Parts parts;
    if (text.starts_with('[')) {
        const auto end = text.find(']');
        if (end == text.npos) return invalid("the bracket is not closed");
        parts.bracketed = true;
        parts.host = text.substr(1, end - 1);
        const std::string_view rest = text.substr(end + 1);
        parts.scoped = !rest.empty();
        if (parts.scoped && rest.front() != ':') {
            return invalid("only a port may follow the bracket: [fd00::1]:443");
        }
        if (parts.scoped) parts.scope = rest.substr(1);
        return parts;
    }
    const auto colon = text.find(':');
    // With two colons all of it is an IPv6 address.
    parts.scoped = colon != text.npos && text.find(':', colon + 1) == text.npos;
    parts.host = parts.scoped ? text.substr(0, colon) : text;
    if (parts.scoped) parts.scope = text.substr(colon + 1);
    return parts;
}

bool looks_like_address(std::string_view host) {
    if (host.find(':') != host.npos) return true;
    const auto slash = host.find('/');
    if (slash == host.npos) return false;
    return std::ranges::all_of(host.substr(0, slash),
                               [](char c) { return is_digit(c) || c == '.'; });
}

}  // namespace

std::string lower_case(std::string_view text) {
    std::string lower(text);
    for (char& c : lower) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return lower;
}

Result<std::string> parse_host_name(std::string_view text) {
    if (text.ends_with('.')) text.remove_suffix(1);
    if (text.empty()) return invalid("a name must not be empty");
    if (text.size() > kMaxName) return invalid("a name must not be longer than 253 characters");
    std::string_view rest = text;
    while (true) {
        const auto dot = rest.find('.');
        const std::string_view label = rest.substr(0, dot);
        if (Status checked = check_label(label); !checked) return checked.error();
        if (dot == rest.npos) {
            if (is_number(label)) return invalid("must be a name or a whole IPv4 address");
            return lower_case(text);
        }
        rest.remove_prefix(dot + 1);
    }
}

Result<Target> Target::parse(std::string_view text) {
    text = trim(text);
    if (text.empty()) return invalid("egress target cannot be empty");
    if (text.find("://") != text.npos) {
        return invalid("must be a name, an address or a network, not a URL");
    }
    if (text == "*") {
        return invalid("a * alone is no target; use defaultAction, or *.example.com");
    }
    const Result<Parts> parts = split(text);
    if (!parts) return parts.error();
    Target target;
    if (parts->scoped) {
        const Result<Scope> scope = parse_scope(parts->scope);
        if (!scope) return scope.error();
        target.scope_ = *scope;
    }
    const Result<net::AddressBlock> block = net::AddressBlock::parse(parts->host);
    if (block) {
        if (parts->bracketed && !block->is_v6()) return invalid("only IPv6 has brackets");
        target.kind_ = Kind::address;
        target.block_ = *block;
        target.text_ = text;
        return target;
    }
    const auto slash = parts->host.find('/');
    if (slash != text.npos && parts->host.find(':', slash) != text.npos) {
        return invalid("an IPv6 network with a port has brackets: [fd00::/8]:443");
    }
    if (parts->bracketed || looks_like_address(parts->host)) return block.error();
    std::string_view name = parts->host;
    if (name.find('/') != name.npos) return invalid("must be a name without a path");
    target.kind_ = name.starts_with("*.") ? Kind::wildcard : Kind::name;
    if (target.kind_ == Kind::wildcard) name.remove_prefix(2);
    const Result<std::string> host = parse_host_name(name);
    if (!host) return host.error();
    target.name_ = *host;
    // The dot goes from the text as well: GET shows, and DELETE names, what counts.
    std::string_view shown = parts->host;
    if (shown.ends_with('.')) shown.remove_suffix(1);
    target.text_ = shown;
    if (parts->scoped) target.text_.append(":").append(parts->scope);
    return target;
}

Target Target::of_tcp_ports(const net::AddressBlock& block, PortRange ports) {
    Target target;
    target.kind_ = Kind::address;
    target.block_ = block;
    target.scope_ = Scope(true, false, ports);
    target.text_ = block.is_v6() ? "[" + block.to_string() + "]" : block.to_string();
    target.text_ += target.scope_.to_string();
    return target;
}

std::string Target::key() const {
    return lower_case(text_);
}

}  // namespace opensandbox::egress
