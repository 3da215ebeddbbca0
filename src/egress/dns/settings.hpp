#pragma once

#include "base/error.hpp"
#include "net/dns/message.hpp"
#include "net/dns/records.hpp"

#include <boost/asio/ip/udp.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace opensandbox::egress::dns {

/// Called for each socket to an upstream before it connects (SO_MARK); a failure fails the attempt.
using SocketHook = std::function<Status(int fd)>;

/// A resolver that queries are sent on to.
struct UpstreamServer {
    UpstreamServer() = default;
    explicit UpstreamServer(boost::asio::ip::udp::endpoint e, SocketHook h = {})
        : endpoint(e), hook(std::move(h)) {}
    boost::asio::ip::udp::endpoint endpoint;  ///< UDP and TCP
    SocketHook hook;                          ///< may be empty
};

struct UpstreamSettings {
    std::vector<UpstreamServer> servers;       ///< asked in this order
    std::chrono::milliseconds timeout{5000};   ///< with one server; network 1.3: 1 to 120 s
    std::string probe = ".";                   ///< name asked for; "." asks for NS, others for A
    std::chrono::seconds probe_interval{30};   ///< network 1.3: 1 to 3,600 s
    std::chrono::seconds connection_idle{10};  ///< after which a TCP connection is closed
    std::size_t in_flight = 1024;              ///< different questions at once, of all clients
    std::uint16_t udp_size = 1232;             ///< what we take over UDP; larger comes by TCP
    bool mixed_case = false;                   ///< letters in random case (0x20), verified
};

struct CacheSettings {
    std::size_t bytes = 16U << 20;  ///< of memory, about; 0 keeps nothing
    std::size_t entries = 50'000;
    /// Bounds of positive TTLs, in what is kept and in what clients see. With the default upper
    /// one an address stays open, for at most 360 s, as long as a client may keep the answer.
    std::chrono::seconds min_ttl{0};
    std::chrono::seconds max_ttl{300};
    std::chrono::seconds max_negative_ttl{60};
};

/// Against data carried out in names. They hold for names that policy allows by a pattern or by
/// default, not for those that a rule names exactly. Defaults pass what CDNs, object stores and
/// load balancers use; 0 turns a limit off.
struct NameLimits {
    std::size_t label = 50;      ///< bytes of one label
    std::size_t below = 120;     ///< bytes below what looks like a registered domain
    std::size_t labels = 12;     ///< in the whole name; reverse names may have 34
    std::size_t distinct = 100;  ///< names below one domain that a client may send on in a minute
};

struct ClientLimits {
    double queries_per_second = 0;      ///< of all kinds; 0 is no limit. Beyond it: REFUSED
    double queries_burst = 1000;        ///< at once
    double forwarded_per_second = 200;  ///< not answered from the cache; 0 is no limit
    double forwarded_burst = 400;
    std::size_t in_flight = 128;       ///< waiting for an upstream; more are dropped (UDP)
    std::size_t connections = 32;      ///< over TCP
    std::size_t all_in_flight = 4096;  ///< of all clients
    std::size_t all_connections = 1024;
    std::chrono::seconds connection_idle{10};
};

/// How a denied name is answered.
enum class DenialAnswer : std::uint8_t { no_such_name, refused };

struct ProxySettings {
    UpstreamSettings upstream;
    CacheSettings cache;
    NameLimits names;
    ClientLimits clients;
    DenialAnswer denial = DenialAnswer::no_such_name;
    /// All others are refused. ANY, AXFR, IXFR, NULL and OPT are even when they are listed.
    std::set<std::uint16_t> types = default_types();
    /// Whether the ech parameter is taken out of HTTPS and SVCB answers: a hidden server name
    /// passes by who checks names.
    bool strip_ech = true;
    /// Longest answer over UDP to clients that take so much.
    std::size_t udp_answer = 4096;

    static std::set<std::uint16_t> default_types() {
        namespace dns = net::dns;
        return {dns::kTypeA,      dns::kTypeAaaa, dns::kTypeCname, dns::kTypeHttps, dns::kTypeSvcb,
                dns::kTypeMx,     dns::kTypeTxt,  dns::kTypeSrv,   dns::kTypeNs,    dns::kTypeSoa,
                dns::kTypePtr,    dns::kTypeCaa,  dns::kTypeNaptr, dns::kTypeDname, dns::kTypeDs,
                dns::kTypeDnskey, dns::kTypeTlsa};
    }
};

}  // namespace opensandbox::egress::dns
