#include "egress/dns/answer.hpp"

#include "egress/policy/special_blocks.hpp"
#include "net/dns/wire_reader.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <set>

namespace opensandbox::egress::dns {

namespace {

using net::dns::ResourceRecord;
using net::dns::Response;
namespace codec = net::dns;

constexpr std::size_t kMaxAliases = 16;

Error unfit(std::string_view what) {
    return {ErrorCode::protocol, "dns answer: " + std::string(what)};
}

std::optional<boost::asio::ip::address> record_address(const ResourceRecord& record) {
    boost::asio::ip::address_v4::bytes_type four{};
    boost::asio::ip::address_v6::bytes_type sixteen{};
    if (record.type == codec::kTypeA && record.data.size() == four.size()) {
        std::memcpy(four.data(), record.data.data(), four.size());
        return boost::asio::ip::address_v4(four);
    }
    if (record.type == codec::kTypeAaaa && record.data.size() == sixteen.size()) {
        std::memcpy(sixteen.data(), record.data.data(), sixteen.size());
        return boost::asio::ip::address_v6(sixteen);
    }
    return std::nullopt;
}

/// The names that the answer section leads to from the question, in their order.
struct Chain {
    std::vector<std::string> names;  ///< wire form, lower case; the first is the question's
    bool endless = false;
};

const ResourceRecord* alias_of(const std::string& name, const Response& response) {
    for (const ResourceRecord& record : response.answers) {
        if (record.type == codec::kTypeCname && codec::same_name(record.owner, name)) {
            return &record;
        }
    }
    return nullptr;
}

Chain follow(const Response& response) {
    Chain chain;
    chain.names.push_back(codec::lower_case(response.name));
    if (response.type == codec::kTypeCname) return chain;
    while (const ResourceRecord* alias = alias_of(chain.names.back(), response)) {
        std::string next = codec::lower_case(codec::target_of(*alias));
        const bool seen =
            std::find(chain.names.begin(), chain.names.end(), next) != chain.names.end();
        if (seen || chain.names.size() > kMaxAliases) {
            chain.endless = true;
            return chain;
        }
        chain.names.push_back(std::move(next));
    }
    return chain;
}

bool is_above(const std::string& owner, const std::string& name) {
    const std::string lower = codec::lower_case(owner);
    return lower.size() < name.size() && name.ends_with(lower);
}

/// Whether an answer's record is about the question or a name that it leads to.
bool belongs(const ResourceRecord& record, const Response& response, const Chain& chain,
             bool dnssec) {
    if (record.dns_class != codec::kClassInternet) return false;
    const std::uint16_t type = record.type;
    if (type == codec::kTypeDname && type != response.type) {
        return std::any_of(chain.names.begin(), chain.names.end(),
                           [&](const std::string& name) { return is_above(record.owner, name); });
    }
    const bool wanted =
        type == response.type || type == codec::kTypeCname || (dnssec && type == codec::kTypeRrsig);
    return wanted &&
           std::any_of(chain.names.begin(), chain.names.end(), [&](const std::string& name) {
               return codec::same_name(record.owner, name) ||
                      (type == codec::kTypeRrsig && is_above(record.owner, name));
           });
}

bool proves_absence(const ResourceRecord& record, bool dnssec) {
    constexpr std::uint16_t kTypeNsec = 47;
    constexpr std::uint16_t kTypeNsec3 = 50;
    if (record.dns_class != codec::kClassInternet) return false;
    if (record.type == codec::kTypeSoa) return true;
    return dnssec && (record.type == codec::kTypeRrsig || record.type == kTypeNsec ||
                      record.type == kTypeNsec3);
}

std::uint32_t seconds(std::chrono::seconds value) {
    constexpr std::chrono::seconds::rep kMost = std::numeric_limits<std::int32_t>::max();
    return static_cast<std::uint32_t>(
        std::clamp<std::chrono::seconds::rep>(value.count(), 0, kMost));
}

/// RFC 2308 section 5: by the SOA record; not at all without one.
std::uint32_t negative_ttl(const Response& response, const CacheSettings& bounds) {
    for (const ResourceRecord& record : response.authorities) {
        if (record.type != codec::kTypeSoa || record.data.size() < 4) continue;
        codec::WireReader reader(record.data, record.data.size() - 4);
        return std::min({record.ttl, reader.long_word(), seconds(bounds.max_negative_ttl)});
    }
    return 0;
}

/// Takes out what does not belong, and address hints.
void clean(Response& response, const Chain& chain, const AnswerRules& rules) {
    std::vector<ResourceRecord> kept;
    for (ResourceRecord& record : response.answers) {
        if (!belongs(record, response, chain, rules.dnssec)) continue;
        if (record.type == codec::kTypeHttps || record.type == codec::kTypeSvcb) {
            auto data = without_hints(record.data, rules.strip_ech);
            if (!data) continue;
            record.data = std::move(*data);
        }
        kept.push_back(std::move(record));
    }
    response.answers = std::move(kept);
    std::erase_if(response.authorities, [&](const ResourceRecord& record) {
        return !proves_absence(record, rules.dnssec);
    });
    response.authentic = response.authentic && rules.dnssec;
}

/// Puts all TTLs within bounds and returns how long the whole may be kept.
std::uint32_t bound_ttls(Response& response, const CacheSettings& bounds, bool positive) {
    const std::uint32_t least = seconds(bounds.min_ttl);
    const std::uint32_t most = std::max(least, seconds(bounds.max_ttl));
    std::uint32_t kept = most;
    for (ResourceRecord& record : response.answers) {
        record.ttl = std::clamp(record.ttl, least, most);
        kept = std::min(kept, record.ttl);
    }
    if (!positive) kept = std::min(kept, negative_ttl(response, bounds));
    for (ResourceRecord& record : response.authorities)
        record.ttl = std::min(record.ttl, kept);
    return kept;
}

Result<std::shared_ptr<const Answer>> encode(const Response& response, const Chain& chain,
                                             std::uint32_t ttl) {
    auto encoded = codec::encode_response(response);
    if (!encoded) return encoded.error();
    auto answer = std::make_shared<Answer>();
    answer->wire = std::move(encoded->bytes);
    answer->ttl_offsets = std::move(encoded->ttl_offsets);
    answer->question_end = codec::kHeaderSize + response.name.size() + 4;
    answer->code = response.code;
    answer->ttl = ttl;
    for (std::size_t i = 0; chain.names.size() > 1 && i < chain.names.size(); ++i)
        answer->chain.push_back(codec::name_text(chain.names[i]));
    for (const ResourceRecord& record : response.answers) {
        const auto address = record_address(record);
        if (!address) continue;
        answer->addresses.emplace_back(*address, record.ttl);
        answer->inner = answer->inner || is_special(*address);
    }
    return std::shared_ptr<const Answer>(std::move(answer));
}

bool holds_type(const Response& response) {
    return std::any_of(response.answers.begin(), response.answers.end(),
                       [&](const ResourceRecord& record) { return record.type == response.type; });
}

}  // namespace

Result<std::shared_ptr<const Answer>> make_answer(Response response, const AnswerRules& rules) {
    const auto no_error = static_cast<std::uint16_t>(codec::ResponseCode::no_error);
    const auto no_such_name = static_cast<std::uint16_t>(codec::ResponseCode::no_such_name);
    if (response.code != no_error && response.code != no_such_name) return unfit("a failure");
    const Chain chain = follow(response);
    if (chain.endless) return unfit("a loop or too long a chain of aliases");
    clean(response, chain, rules);
    const bool positive = response.code == no_error && holds_type(response);
    if (positive && !rules.dnssec) response.authorities.clear();
    const std::uint32_t ttl = bound_ttls(response, rules.bounds, positive);
    return encode(response, chain, ttl);
}

FilteredAnswer without_inner(const std::shared_ptr<const Answer>& answer,
                             const AddressFilter& allowed) {
    FilteredAnswer filtered;
    filtered.answer = answer;
    auto response = codec::parse_response(answer->wire);
    // It is our own encoding; if it cannot be read, nothing of it is handed out.
    filtered.emptied = !response;
    if (!response) return filtered;
    filtered.removed = std::erase_if(response->answers, [&](const ResourceRecord& record) {
        const auto address = record_address(record);
        return address && is_special(*address) && !allowed(*address);
    });
    if (filtered.removed == 0) return filtered;
    filtered.emptied = !holds_type(*response);
    auto encoded = encode(*response, follow(*response), answer->ttl);
    if (encoded) {
        filtered.answer = std::move(*encoded);
    } else {
        filtered.emptied = true;
    }
    return filtered;
}

}  // namespace opensandbox::egress::dns
