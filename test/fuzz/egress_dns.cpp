// A client's query and an upstream's reply: what comes of them must be readable again.
#include "egress/dns/query_limits.hpp"
#include "egress/dns/reply.hpp"
#include "net/dns/wire_reader.hpp"

#include <cstdint>
#include <string>

using namespace opensandbox;
using namespace opensandbox::egress::dns;

namespace {

void check(const std::string& reply, std::uint16_t id, std::size_t limit) {
    if (reply.size() > limit) __builtin_trap();
    const auto read = net::dns::parse_response(reply);
    if (!read || read->id != id) __builtin_trap();
}

void answer(const Answer& answer, std::string_view message, std::size_t size) {
    const auto query = net::dns::parse_query(message);
    if (!query) return;
    // The cache hands out an answer for its own question only.
    const auto name_of = [](std::string_view bytes, std::size_t question_end) {
        return bytes.substr(12, question_end - 12 - 4);
    };
    if (!net::dns::same_name(name_of(message, query->question_end),
                             name_of(answer.wire, answer.question_end))) {
        return;
    }
    std::string reply;
    const std::size_t limit = answer_limit(*query, size % 2 == 0, 4096);
    write_answer(answer, *query, message, static_cast<std::uint32_t>(size), limit, reply);
    check(reply, query->id, limit);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    // The first two bytes tell where the query ends and the reply begins.
    const std::size_t wanted = static_cast<std::size_t>(data[0]) << 8 | data[1];
    const std::size_t split = 2 + wanted % (size - 1);
    const std::string message(data + 2, data + split);
    const std::string upstream(data + split, data + size);
    if (const auto query = net::dns::parse_query(message)) {
        const std::string& name = query->question.name;
        (void)passed_limit(name, NameLimits());
        if (!std::string_view(name).ends_with(registered_part(name))) __builtin_trap();
        std::string reply;
        write_refusal(Refusal(net::dns::ResponseCode::refused, ExtendedError::blocked, upstream),
                      *query, message, reply);
        check(reply, query->id, message.size() + 11 + 6 + 200);
    } else {
        const std::string reply = malformed_reply(message);
        if (!reply.empty() && reply.size() != 12) __builtin_trap();
    }
    auto response = net::dns::parse_response(upstream);
    if (!response) return 0;
    for (const bool dnssec : {false, true}) {
        AnswerRules rules;
        rules.dnssec = dnssec;
        const auto made = make_answer(*response, rules);
        if (!made) continue;
        answer(**made, message, size);
        const auto filtered =
            without_inner(*made, [](const boost::asio::ip::address&) { return false; });
        if (!filtered.emptied && filtered.answer->inner) __builtin_trap();
        answer(*filtered.answer, message, size);
    }
    return 0;
}
