#include "egress/rules/host_table.hpp"
#include "figures.hpp"
#include "measures.hpp"

#include <iostream>
#include <optional>

namespace opensandbox::bench {

namespace {

using namespace egress::rules;
using boost::asio::ip::address_v4;

constexpr const char* kTable = "opensandbox_bench";
constexpr std::chrono::seconds kLifetime{3600};
/// Of one sandbox, at which a policy change is measured.
constexpr std::size_t kOfOne = 10'000;
constexpr std::size_t kOfName = 40;
constexpr int kChanges = 20;

IpAddress public_address(std::size_t number) {
    return address_v4(static_cast<std::uint32_t>(0x14000000U + number));
}

std::string name_of(std::size_t number) {
    return "n" + std::to_string(number) + ".bench.example";
}

/// Names, and some networks that no other sandbox's policy has.
PolicyRules policy_of(std::size_t number) {
    PolicyRules rules;
    rules.learned_scopes = {Scope()};
    for (std::size_t i = 0; i < 4; ++i) {
        const address_v4 network(static_cast<std::uint32_t>(0x50000000U + number * 2048 + i * 512));
        rules.allowed.emplace_back(Prefix(network, 24), Scope(6, 443));
    }
    rules.normalize();
    return rules;
}

HostOptions host_options() {
    HostOptions options(kTable);
    options.gateway4 = address_v4(0x0a500001U);
    options.dns_port = 5353;
    return options;
}

bool keep_all(const std::string&, const Scope&) {
    return true;
}

/// Addresses of one name after the other, learned as answers bring them.
void learn_names(HostTable& table, const std::string& link, std::size_t from, std::size_t count) {
    for (std::size_t done = 0; done < count; done += kOfName) {
        std::vector<IpAddress> addresses;
        for (std::size_t i = done; i < std::min(count, done + kOfName); ++i)
            addresses.push_back(public_address(from + i));
        must(table.learn(link, name_of((from + done) / kOfName), addresses, {Scope()}, kLifetime));
    }
}

std::string link_name(std::size_t number) {
    return "other" + std::to_string(number);
}

void guard_links(HostTable& table, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        const auto own = address_v4(static_cast<std::uint32_t>(0x0a800000U + i));
        auto cut = table.add(GuardedSandbox(link_name(i), {own}), policy_of(i), keep_all);
        (void)must(std::move(cut));
        learn_names(table, link_name(i), i * 4, 4);
    }
}

/// Turns a sandbox's policy to another one and back; all its names stay, or all but a few.
void change_policies(HostTable& table, const std::string& link, Figures& figures) {
    Times kept;
    for (int i = 0; i < kChanges; ++i) {
        kept.measure([&] {
            auto cut = table.set_policy(link, policy_of(i % 2 == 0 ? 5000 : 5001), keep_all);
            (void)must(std::move(cut));
        });
    }
    figures.add("change", kept);
    Times some;
    for (int i = 0; i < kChanges; ++i) {
        const std::string lost = name_of(static_cast<std::size_t>(i));
        const auto without = [&](const std::string& name, const Scope&) { return name != lost; };
        some.measure([&] {
            auto cut = table.set_policy(link, policy_of(i % 2 == 0 ? 5000 : 5001), without);
            (void)must(std::move(cut));
        });
    }
    figures.add("change_loses_name", some);
    const std::size_t before = table.learned().of(link, Clock::now()).size();
    const auto begun = Clock::now();
    auto cut = table.set_policy(link, policy_of(5000),
                                [](const std::string&, const Scope&) { return false; });
    (void)must(std::move(cut));
    figures.add("change_loses_all", seconds_since(begun));
    figures.add("lost", static_cast<double>(before));
}

}  // namespace

void learn(const Arguments& arguments) {
    const std::size_t held = std::stoul(arguments[0]);
    const std::size_t count = std::stoul(arguments[1]);
    HostTable table = must(HostTable::open(host_options()));
    const std::size_t sandboxes = held / kOfOne;
    for (std::size_t i = 0; i < sandboxes; ++i) {
        const auto own = address_v4(static_cast<std::uint32_t>(0x0a800000U + i));
        auto cut = table.add(GuardedSandbox(link_name(i), {own}), policy_of(i), keep_all);
        (void)must(std::move(cut));
        learn_names(table, link_name(i), i * kOfOne, kOfOne);
    }
    Figures figures;
    figures.add("held", static_cast<double>(table.learned().size()));
    Times one;
    for (std::size_t i = 0; i < count; ++i) {
        const std::vector<IpAddress> addresses{public_address(held + i)};
        const std::string name = name_of(held + i);
        const std::string link = link_name(1 + i % (sandboxes - 1));
        one.measure([&] { must(table.learn(link, name, addresses, {Scope()}, kLifetime)); });
    }
    figures.add("learn", one);
    change_policies(table, link_name(0), figures);
    figures.tell();
}

void guard(const Arguments& arguments) {
    const std::size_t sandboxes = std::stoul(arguments[0]);
    const auto own = boost::asio::ip::make_address(arguments[2]);
    std::optional<HostTable> table;
    for (std::string word; std::getline(std::cin, word);) {
        const auto begun = Clock::now();
        if (word == "on") {
            table.emplace(must(HostTable::open(host_options())));
            guard_links(*table, sandboxes - 1);
            // All that the sandbox under load may do is what it learned, as most of its traffic is.
            auto cut = table->add(GuardedSandbox(arguments[1], {own}), policy_of(4000), keep_all);
            (void)must(std::move(cut));
            const auto peer = boost::asio::ip::make_address("192.0.2.1");
            must(table->learn(arguments[1], "peer.bench.example", {peer}, {Scope()}, kLifetime));
        } else {
            table.reset();
            must(HostTable::remove(kTable));
        }
        Figures figures;
        figures.add("took", seconds_since(begun));
        figures.tell();
    }
}

}  // namespace opensandbox::bench
