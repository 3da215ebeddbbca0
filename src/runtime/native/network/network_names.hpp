#pragma once

#include "net/ipv4_range.hpp"

#include <boost/asio/ip/address.hpp>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::runtime::native {

/// Who goes by which name in which network. Not thread-safe.
class NetworkNames {
  public:
    using Address = boost::asio::ip::address;

    /// A sandbox is known by its IPv4 address; `others` are those it has besides. Without names it
    /// is gone.
    void set(net::Ipv4Address sandbox, std::string network, std::vector<std::string> names,
             const std::vector<Address>& others = {});

    /// The addresses that a name has for who asks, in its own network; empty optional when the name
    /// is none of that network's. Names also go with the network's name behind them, or with one of
    /// the `search` domains, which resolvers of C libraries put there.
    [[nodiscard]] std::optional<std::vector<Address>> find(
        net::Ipv4Address asking, std::string_view name,
        const std::vector<std::string>& search) const;

  private:
    struct Member {
        std::string network;
        std::vector<std::string> names;
        std::vector<Address> addresses;
    };
    using Key = std::pair<std::string, std::string>;  ///< network, name
    std::map<net::Ipv4Address, Member> members_;
    std::map<Key, std::vector<Address>> names_;
};

}  // namespace opensandbox::runtime::native
