#include "egress/vault/binding_collisions.hpp"

#include <catch2/catch.hpp>

#include <random>

using namespace opensandbox::egress;

namespace {

/// Every host and path that the patterns of these tests tell apart.
std::vector<std::string> hosts() {
    return {"a.x.org", "b.x.org", "c.a.x.org", "d.c.a.x.org", "a.y.org", "x.org"};
}
std::vector<std::string> paths() {
    return {"/", "/a", "/ab", "/ab/c", "/b", "/b/", "/b/c", "/ab/cd", "/abc"};
}
const std::vector<std::string> kMethods{"GET", "PUT", "POST"};

template <class Item>
const Item& one(std::mt19937& random, const std::vector<Item>& items) {
    return items[random() % items.size()];
}

Binding some_binding(std::mt19937& random) {
    Binding binding;
    BindingMatch& match = binding.match;
    match.schemes = {random() % 4 == 0 ? "http" : "https"};
    match.ports = {443};
    for (int i = 0; i < 2; ++i) {
        static const std::vector<std::string> kSuffixes{"x.org", "a.x.org", "y.org", "c.a.x.org"};
        const bool wildcard = random() % 2 == 0;
        match.hosts.emplace_back(wildcard, one(random, wildcard ? kSuffixes : hosts()));
        match.methods.push_back(one(random, kMethods));
        match.paths.emplace_back(one(random, paths()) + (random() % 2 == 0 ? "*" : ""));
    }
    return binding;
}

bool matches(const Binding& binding, bool wildcard, const std::string& host,
             const std::string& method, const std::string& path) {
    const BindingMatch& match = binding.match;
    const bool at_host = std::ranges::any_of(match.hosts, [&](const HostPattern& pattern) {
        return pattern.wildcard == wildcard && pattern.matches(host);
    });
    return at_host && match.allows("https", 443, method) &&
           std::ranges::any_of(match.paths,
                               [&](const PathPattern& pattern) { return pattern.matches(path); });
}

/// Tries every request.
bool some_request_matches_both(const Binding& a, const Binding& b) {
    for (const bool wildcard : {false, true}) {
        for (const std::string& host : hosts()) {
            for (const std::string& method : kMethods) {
                for (const std::string& path : paths()) {
                    if (matches(a, wildcard, host, method, path) &&
                        matches(b, wildcard, host, method, path)) {
                        return true;
                    }
                }
            }
        }
    }
    return false;
}

}  // namespace

TEST_CASE("two bindings collide when some request matches both") {
    std::mt19937 random(7);
    int collisions = 0;
    for (int round = 0; round < 3000; ++round) {
        std::vector<Binding> bindings{some_binding(random), some_binding(random)};
        for (Binding& binding : bindings)
            binding.match.schemes = {"https"};
        const bool expected = some_request_matches_both(bindings[0], bindings[1]);
        if (find_collision(bindings).has_value() != expected) {
            INFO(round);
            for (const Binding& binding : bindings) {
                for (int i = 0; i < 2; ++i) {
                    UNSCOPED_INFO(binding.match.hosts[i].text()
                                  << " " << binding.match.methods[i] << " "
                                  << binding.match.paths[i].text());
                }
            }
            FAIL("expected " << expected);
        }
        if (expected) ++collisions;
    }
    CHECK(collisions > 100);
    CHECK(collisions < 2900);
}

TEST_CASE("a collision among many is found by its indexes") {
    std::vector<Binding> bindings;
    for (int i = 0; i < 200; ++i) {
        Binding binding;
        binding.match.schemes = {"https"};
        binding.match.ports = {443};
        binding.match.methods = {"GET"};
        binding.match.hosts = {HostPattern(i % 2 == 0, "h" + std::to_string(i) + ".example.com")};
        binding.match.paths = {PathPattern("/*")};
        bindings.push_back(binding);
    }
    CHECK_FALSE(find_collision(bindings).has_value());
    bindings[20].match.hosts.emplace_back(true, "x.h150.example.com");
    CHECK(find_collision(bindings) == std::pair<std::size_t, std::size_t>(20, 150));
    bindings[20].match.schemes = {"http"};
    CHECK_FALSE(find_collision(bindings).has_value());
}
