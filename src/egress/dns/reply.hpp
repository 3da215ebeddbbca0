#pragma once

#include "egress/dns/answer.hpp"
#include "net/dns/message.hpp"

#include <cstdint>
#include <string>
#include <string_view>

/// What clients get. `message` is the query's bytes, which parse_query() took as `query`.
namespace opensandbox::egress::dns {

/// RFC 8914.
enum class ExtendedError : std::uint16_t {
    none = 0xffff,
    not_ready = 14,
    blocked = 15,     ///< by policy
    prohibited = 18,  ///< by a limit, or the type is not allowed
    no_reachable_authority = 22,
};

/// Why a query is not answered as asked.
struct Refusal {
    net::dns::ResponseCode code = net::dns::ResponseCode::server_failure;
    ExtendedError info = ExtendedError::none;
    std::string text;
};

/// Longest answer that this client takes.
std::size_t answer_limit(const net::dns::Query& query, bool tcp, std::size_t udp_most);

/// Writes the answer into `out` with TTLs that are `age` seconds less, id, question and flags of
/// the query, and an OPT record if the client sent one. Above `limit` bytes only its head, marked
/// as cut; returns false then.
bool write_answer(const Answer& answer, const net::dns::Query& query, std::string_view message,
                  std::uint32_t age, std::size_t limit, std::string& out);

/// A response without records, with the reason as an extended error if the client sent an OPT
/// record.
void write_refusal(const Refusal& refusal, const net::dns::Query& query, std::string_view message,
                   std::string& out);

/// The response to a query of an EDNS version that nobody knows.
void write_bad_version(const net::dns::Query& query, std::string_view message, std::string& out);

/// The response to what parse_query() did not take: NOTIMP for other operations than a query,
/// FORMERR else. Empty when it has no header or is a response itself.
std::string malformed_reply(std::string_view message);

}  // namespace opensandbox::egress::dns
