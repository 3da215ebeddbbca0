#pragma once

#include "egress/dns/settings.hpp"
#include "net/dns/records.hpp"

#include <boost/asio/ip/address.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace opensandbox::egress::dns {

struct AnswerAddress {
    boost::asio::ip::address address;
    std::uint32_t ttl = 0;  ///< seconds
};

/// What an upstream said, cleaned and ready to be sent to any client: only records that belong to
/// the question and the names it leads to, no additional section, no address hints.
struct Answer {
    std::string wire;  ///< the message with id 0 and without OPT record
    std::vector<std::uint16_t> ttl_offsets;
    std::size_t question_end = 0;
    std::uint16_t code = 0;
    std::vector<AnswerAddress> addresses;  ///< of A and AAAA records
    std::vector<std::string> chain;  ///< the name, then its aliases, as Gate gets them; or none
    bool inner = false;              ///< an address is_special()
    std::uint32_t ttl = 0;           ///< seconds that it may be kept; 0 not at all
};

struct AnswerRules {
    CacheSettings bounds;
    bool strip_ech = true;
    bool dnssec = false;  ///< the client asked for DNSSEC records
};

/// `protocol` for an answer that nobody should see: a loop or a very long chain of aliases, a code
/// other than NOERROR and NXDOMAIN.
Result<std::shared_ptr<const Answer>> make_answer(net::dns::Response response,
                                                  const AnswerRules& rules);

using AddressFilter = std::function<bool(const boost::asio::ip::address&)>;

struct FilteredAnswer {
    std::shared_ptr<const Answer> answer;
    std::size_t removed = 0;
    bool emptied = false;  ///< nothing that was asked for is left
};

/// The answer without inner addresses but those that `allowed` lets pass.
FilteredAnswer without_inner(const std::shared_ptr<const Answer>& answer,
                             const AddressFilter& allowed);

/// The data of an HTTPS or SVCB record (RFC 9460) without its address hints, which would have to be
/// opened like addresses though hardly a client needs them, and without the ech parameter if so
/// wanted. Nothing when it is malformed or says that it is useless without one of them.
std::optional<std::string> without_hints(std::string_view data, bool strip_ech);

}  // namespace opensandbox::egress::dns
