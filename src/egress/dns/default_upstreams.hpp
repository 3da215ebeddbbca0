#pragma once

#include <boost/asio/ip/udp.hpp>

#include <filesystem>
#include <string_view>
#include <vector>

namespace opensandbox::egress::dns {

/// The upstreams when none is named (network 1.4): those of a resolv.conf's text, outside of
/// loopback first, at most 10; 8.8.8.8 when it names none. Pure.
std::vector<boost::asio::ip::udp::endpoint> default_upstreams(std::string_view resolv_conf);
/// The same of a file, read now; one that is not there names none.
std::vector<boost::asio::ip::udp::endpoint> default_upstreams_of(
    const std::filesystem::path& resolv_conf);

}  // namespace opensandbox::egress::dns
