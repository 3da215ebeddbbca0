#include "egress/intercept/core/host_name.hpp"

#include <boost/asio/ip/address.hpp>

#include <charconv>

namespace opensandbox::egress {
namespace {

namespace asio = boost::asio;

constexpr std::size_t kMaxName = 253;
constexpr std::size_t kMaxLabel = 63;

bool is_label_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/// Resolvers take "127.1" and "0x7f000001" for addresses: such a name is none of DNS.
bool looks_numeric(std::string_view name) {
    std::string_view last = name.substr(name.rfind('.') + 1);
    return last.find_first_not_of("0123456789") == std::string_view::npos ||
           last.substr(0, 2) == "0x";
}

std::optional<std::uint16_t> parse_port(std::string_view text) {
    std::uint16_t port = 0;
    auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), port);
    bool whole = failure == std::errc() && end == text.data() + text.size();
    if (!whole || port == 0) return std::nullopt;
    return port;
}

std::optional<std::string> parse_address(std::string_view text, bool bracketed) {
    boost::system::error_code failure;
    auto address = asio::ip::make_address(std::string(text), failure);
    if (failure || address.is_v6() != bracketed) return std::nullopt;
    if (address.is_v6() && address.to_v6().scope_id() != 0) return std::nullopt;
    return address.to_string();
}

}  // namespace

std::optional<std::string> normal_host_name(std::string_view text) {
    if (!text.empty() && text.back() == '.') text.remove_suffix(1);
    if (text.empty() || text.size() > kMaxName) return std::nullopt;
    std::string name(text);
    std::size_t label = 0;
    for (char& c : name) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
        if (c == '.' ? label == 0 : !is_label_character(c)) return std::nullopt;
        label = c == '.' ? 0 : label + 1;
        if (label > kMaxLabel) return std::nullopt;
    }
    if (label == 0 || looks_numeric(name)) return std::nullopt;
    return name;
}

std::optional<Authority> parse_authority(std::string_view text) {
    Authority out;
    std::string_view host = text;
    std::string_view rest;
    bool bracketed = !text.empty() && text.front() == '[';
    if (bracketed) {
        auto end = text.find(']');
        if (end == std::string_view::npos) return std::nullopt;
        host = text.substr(1, end - 1);
        rest = text.substr(end + 1);
    } else if (auto colon = text.find(':'); colon != std::string_view::npos) {
        host = text.substr(0, colon);
        rest = text.substr(colon);
    }
    if (!rest.empty()) {
        out.port = rest.front() == ':' ? parse_port(rest.substr(1)) : std::nullopt;
        if (!out.port) return std::nullopt;
    }
    if (auto address = parse_address(host, bracketed)) {
        out.host = std::move(*address);
        out.is_address = true;
        return out;
    }
    auto name = bracketed ? std::nullopt : normal_host_name(host);
    if (!name) return std::nullopt;
    out.host = std::move(*name);
    return out;
}

std::string host_and_port(std::string_view host, std::uint16_t port) {
    std::string shown(host);
    if (host.find(':') != std::string_view::npos) shown = "[" + shown + "]";
    return shown + ":" + std::to_string(port);
}

}  // namespace opensandbox::egress
