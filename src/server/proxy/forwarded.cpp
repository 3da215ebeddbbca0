#include "net/unmapped_address.hpp"
#include "server/proxy/proxy_rules.hpp"

#include <boost/asio/ip/address.hpp>

#include <algorithm>
#include <optional>

namespace opensandbox::server {
namespace {

using boost::asio::ip::address;

/// Of an entry: an address, alone or with a port ("192.0.2.1:80", "[2001:db8::1]:80").
std::optional<address> address_in(std::string_view entry) {
    if (entry.starts_with('[')) {
        std::size_t end = entry.find(']');
        std::string_view port = entry.substr(std::min(end, entry.size() - 1) + 1);
        if (end == std::string_view::npos || !(port.empty() || port.starts_with(':'))) return {};
        entry = entry.substr(1, end - 1);
    } else if (std::ranges::count(entry, ':') == 1) {
        entry = entry.substr(0, entry.find(':'));
    }
    boost::system::error_code failed;
    address parsed = boost::asio::ip::make_address(entry, failed);
    if (failed) return std::nullopt;
    return net::unmapped(parsed);
}

bool is_trusted(const address& who, const std::vector<net::AddressBlock>& trusted) {
    return std::ranges::any_of(trusted, [&](const auto& block) { return block.contains(who); });
}

/// The entries of a field, over all its lines, from the last to the first.
std::vector<std::string_view> entries_backwards(const http::Fields& fields, std::string_view name) {
    std::vector<std::string_view> entries;
    for (const auto& [field, value] : fields) {
        if (!http::equal_ignoring_case(field, name)) continue;
        std::string_view rest = value;
        while (true) {
            std::size_t comma = rest.find(',');
            std::string_view entry = rest.substr(0, comma);
            entry.remove_prefix(std::min(entry.find_first_not_of(" \t"), entry.size()));
            entry = entry.substr(0, entry.find_last_not_of(" \t") + 1);
            entries.push_back(entry);
            if (comma == std::string_view::npos) break;
            rest.remove_prefix(comma + 1);
        }
    }
    std::ranges::reverse(entries);
    return entries;
}

}  // namespace

Origination origination_of(const http::Fields& fields, std::string_view peer,
                           const std::vector<net::AddressBlock>& trusted) {
    Origination from;
    from.host = fields.get("Host").value_or("");
    from.client = peer;
    auto proxy = address_in(peer);
    if (!proxy || !is_trusted(*proxy, trusted)) return from;

    for (std::string_view entry : entries_backwards(fields, "X-Forwarded-For")) {
        auto client = address_in(entry);
        if (!client) break;
        from.client = client->to_string();
        if (!is_trusted(*client, trusted)) break;
    }
    auto schemes = entries_backwards(fields, "X-Forwarded-Proto");
    if (!schemes.empty() && http::equal_ignoring_case(schemes.front(), "https")) {
        from.scheme = "https";
    }
    auto hosts = entries_backwards(fields, "X-Forwarded-Host");
    if (!hosts.empty() && !hosts.front().empty()) from.host = hosts.front();
    return from;
}

}  // namespace opensandbox::server
