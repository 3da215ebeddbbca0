#include "egress/policy/effective_policy.hpp"
#include "egress/policy/policy_json.hpp"
#include "figures.hpp"
#include "measures.hpp"

#include <fstream>
#include <iterator>

namespace opensandbox::bench {

namespace {

using namespace egress;

constexpr std::size_t kVerdicts = 200'000;

/// What is asked for, and how many of the verdicts allowed it, which keeps them from being left
/// out.
template <class Question, class Ask>
void measure(Figures& figures, const std::string& name, const std::vector<Question>& questions,
             const Ask& ask) {
    if (questions.empty()) throw std::runtime_error("no rules for " + name);
    Times times;
    std::size_t allowed = 0;
    for (std::size_t i = 0; i < kVerdicts; ++i) {
        // In an order that no cache foresees.
        const Question& question = questions[i * 7919 % questions.size()];
        times.measure([&] { allowed += ask(question) ? 1U : 0U; });
    }
    figures.add(name, times);
    figures.add(name + "_allowed", static_cast<double>(allowed) / double(kVerdicts));
}

struct Questions {
    explicit Questions(const Policy& policy) {
        for (const PolicyRule& rule : policy.rules) {
            const Target& target = *rule.target;
            switch (target.kind()) {
                case Target::Kind::name:
                    named.push_back(target.name());
                    unknown.push_back("x." + target.name() + ".example");
                    break;
                case Target::Kind::wildcard: below.push_back("a.b.c." + target.name()); break;
                case Target::Kind::address: addresses.push_back(target.block().network()); break;
            }
        }
        for (std::uint32_t i = 0; i < 10'000; ++i)
            strangers.emplace_back(boost::asio::ip::address_v4(0xd0000000U + i * 65'537U));
    }

    std::vector<std::string> named, below, unknown;
    std::vector<net::Address> addresses, strangers;
};

}  // namespace

void judge(const Arguments& arguments) {
    std::ifstream file(arguments[0]);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    Figures figures;
    const auto begun = Clock::now();
    Policy read = must(parse_policy(text));
    const Questions questions(read);
    const auto parsed = Clock::now();
    const EffectivePolicy policy(Overlay(), std::move(read));
    figures.add("indexed", seconds_since(parsed));
    figures.add("parsed", std::chrono::duration<double>(parsed - begun).count());
    figures.add("rules", static_cast<double>(policy.rules().size()));
    const auto name = [&](const std::string& asked) { return policy.judge_name(asked).allowed; };
    const auto request = [&](const std::string& asked) {
        return policy.judge_name(asked, Transport::tcp, 443).allowed;
    };
    const auto address = [&](const net::Address& asked) {
        return policy.judge_address(asked, Transport::tcp, 443).allowed;
    };
    measure(figures, "name", questions.named, name);
    measure(figures, "name_below", questions.below, name);
    measure(figures, "name_unknown", questions.unknown, name);
    measure(figures, "request", questions.named, request);
    measure(figures, "address", questions.addresses, address);
    measure(figures, "address_unknown", questions.strangers, address);
    figures.tell();
}

}  // namespace opensandbox::bench
