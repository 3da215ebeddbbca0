// Policies, patches, targets and overlay files as users and operators write them.
#include "egress/policy/effective_policy.hpp"
#include "egress/policy/policy_json.hpp"

#include <cstdint>
#include <cstdlib>
#include <string_view>

using namespace opensandbox::egress;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    if (const auto target = Target::parse(text)) {
        // What is shown is what was meant.
        const auto again = Target::parse(target->text());
        if (!again || again->key() != target->key() || again->scope() != target->scope())
            std::abort();
    }
    if (auto policy = parse_policy(text)) {
        const auto again = parse_policy(to_saved_json(*policy));
        if (!again || to_json(*again) != to_json(*policy)) std::abort();
        const EffectivePolicy effective({}, std::move(*policy));
        for (const Rule& rule : effective.rules()) {
            if (rule.target.kind() == Target::Kind::address) continue;
            const NameVerdict verdict = effective.judge_name(rule.target.name());
            if (verdict.allowed == verdict.granted.empty()) std::abort();
        }
        (void)effective.judge_name(text);
    }
    (void)parse_patch(text);
    (void)parse_delete(text);
    (void)parse_overlay(text, Action::deny, kDenyFile);
    if (const auto skip = LogSkip::parse(text, kLogSkipFile)) (void)skip->skips(text);
    return 0;
}
