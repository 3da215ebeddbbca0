#pragma once

#include "base/error.hpp"

#include <boost/asio/ip/address.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// DNS messages (RFC 1035, 6891) as far as a forwarder needs them. Pure; bytes are not trusted.
namespace opensandbox::net::dns {

inline constexpr std::uint16_t kTypeA = 1;
inline constexpr std::uint16_t kTypeAaaa = 28;
inline constexpr std::uint16_t kTypeOpt = 41;
inline constexpr std::uint16_t kClassInternet = 1;
/// Longest message that TCP can carry.
inline constexpr std::size_t kMaxMessage = 65'535;
/// What a client takes over UDP unless it says more.
inline constexpr std::size_t kPlainUdp = 512;

enum class ResponseCode : std::uint8_t {
    no_error = 0,
    format_error = 1,
    server_failure = 2,
    no_such_name = 3,
    not_implemented = 4,
    refused = 5,
};

/// The client wants DNSSEC records: a flag in the TTL of an OPT record (RFC 6891).
inline constexpr std::uint32_t kDnssecOk = 0x8000;

/// What is asked for.
struct Question {
    std::string
        name;  ///< lower case, without the last dot; odd bytes as \DDD, dots in labels as \.
    std::uint16_t type = 0;
    std::uint16_t dns_class = 0;
    friend bool operator==(const Question&, const Question&) = default;
};

/// A query with its one question.
struct Query {
    std::uint16_t id = 0;
    Question question;
    std::size_t question_end = 0;      ///< offset of the first byte behind it
    std::size_t udp_size = kPlainUdp;  ///< longest answer the client takes over UDP; 512 to 65,535
    bool edns = false;                 ///< the client sent an OPT record
    std::uint8_t edns_version = 0;
    bool dnssec_ok = false;          ///< its DO flag
    bool checking_disabled = false;  ///< the CD flag of the header
};

/// `protocol` unless it is a standard query with exactly one question.
Result<Query> parse_query(std::string_view message);

/// One answer that names an address, or a name for a name.
struct Record {
    std::string name;
    std::uint16_t type = 0;
    std::uint32_t ttl = 0;                            ///< seconds
    std::optional<boost::asio::ip::address> address;  ///< of A and AAAA
    friend bool operator==(const Record&, const Record&) = default;
};

struct Reply {
    std::uint16_t id = 0;
    ResponseCode code = ResponseCode::no_error;
    bool truncated = false;
    Question question;
    std::vector<Record> answers;  ///< of class internet, in their order, at most 512
};

/// `protocol` unless it is a whole response with exactly one question. Authority and additional
/// records are not looked at.
Result<Reply> parse_reply(std::string_view message);

/// Whether `message` is a response to the question of `query`, under this id.
bool answers(std::string_view message, std::uint16_t id, const Question& question);

/// The message under another id. It has at least 2 bytes.
std::string with_id(std::string_view message, std::uint16_t id);

/// A response without records. `message` is what parse_query() took.
std::string make_reply(std::string_view message, const Query& query, ResponseCode code);

/// A response with an A or AAAA record, whichever the question wants, for each address of that
/// kind; as many as fit `limit` bytes.
std::string make_address_reply(std::string_view message, const Query& query,
                               const std::vector<boost::asio::ip::address>& addresses,
                               std::uint32_t ttl, std::size_t limit);

/// The response without its records, marked as cut, for clients that take less; as it is when it
/// fits.
std::string fit_udp(std::string_view reply, const Query& query);

}  // namespace opensandbox::net::dns
