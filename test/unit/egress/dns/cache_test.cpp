#include "dns_fixture.hpp"

using namespace opensandbox;
using namespace opensandbox::egress::dns;
using namespace opensandbox::egress::dns::test;

namespace {

using Time = CacheEntry::Time;
const Time start = Time() + std::chrono::hours(1);

CacheKey key(std::string_view name, std::uint16_t type = codec::kTypeA) {
    CacheKey made;
    made.name = name;
    made.type = type;
    return made;
}

std::shared_ptr<CacheEntry> entry(const std::string& name, std::uint32_t ttl = 100,
                                  Time now = start) {
    auto answer = make_answer(
        response(name, codec::kTypeA, {address_record(name, "198.51.100.1", ttl)}), AnswerRules());
    REQUIRE(answer);
    return std::make_shared<CacheEntry>(key(name), *answer, now);
}

}  // namespace

TEST_CASE("dns cache: an answer is found until its time is up") {
    Cache cache{CacheSettings()};
    cache.put(entry("a.example", 100));
    CHECK(cache.find(key("a.example"), start + std::chrono::seconds(99)));
    CHECK(cache.find(key("a.example"), start + std::chrono::seconds(99))
              ->age(start + std::chrono::seconds(99)) == 99);
    CHECK_FALSE(cache.find(key("a.example", codec::kTypeAaaa), start));
    CacheKey secure = key("a.example");
    secure.dnssec = true;
    CHECK_FALSE(cache.find(secure, start));
    CHECK_FALSE(cache.find(key("a.example"), start + std::chrono::seconds(100)));
    CHECK(cache.entries() == 0);
    CHECK(cache.bytes() == 0);
}

TEST_CASE("dns cache: answers without a lifetime are not kept") {
    Cache cache{CacheSettings()};
    cache.put(entry("a.example", 0));
    CHECK(cache.entries() == 0);
}

TEST_CASE("dns cache: a newer answer takes the place of an older one") {
    Cache cache{CacheSettings()};
    cache.put(entry("a.example", 10));
    const auto newer = entry("a.example", 200);
    cache.put(newer);
    CHECK(cache.entries() == 1);
    CHECK(cache.bytes() == newer->size());
    CHECK(cache.find(key("a.example"), start) == newer);
}

TEST_CASE("dns cache: the least recently used goes first, by number and by memory") {
    CacheSettings settings;
    const std::size_t one = entry("a.example")->size();
    SECTION("number") {
        settings.entries = 3;
    }
    SECTION("memory") {
        settings.bytes = 3 * one + one / 2;
    }
    Cache cache(settings);
    for (const char* name : {"a.example", "b.example", "c.example"})
        cache.put(entry(name));
    CHECK(cache.find(key("a.example"), start));
    cache.put(entry("d.example"));
    CHECK(cache.entries() == 3);
    CHECK(cache.bytes() <= settings.bytes);
    CHECK(cache.find(key("a.example"), start));
    CHECK_FALSE(cache.find(key("b.example"), start));
    CHECK(cache.find(key("c.example"), start));
    CHECK(cache.find(key("d.example"), start));
}

TEST_CASE("dns cache: a cache of no size keeps nothing") {
    CacheSettings settings;
    settings.bytes = 0;
    Cache cache(settings);
    cache.put(entry("a.example"));
    CHECK(cache.entries() == 0);
}

TEST_CASE("dns cache: who has learned an answer is remembered, for how long and under what") {
    Cache cache{CacheSettings()};
    const auto kept = entry("a.example");
    cache.put(kept);
    const std::size_t before = cache.bytes();
    const Time until = start + std::chrono::seconds(160);
    for (const ClientId client : {5U, 3U, 9U})
        cache.set_learned(*kept, client, 1, until);
    CHECK(cache.bytes() > before);
    CHECK(kept->learned(3, 1, until));
    CHECK(kept->learned(9, 1, until));
    CHECK_FALSE(kept->learned(4, 1, until));
    CHECK_FALSE(kept->learned(3, 2, until));
    CHECK_FALSE(kept->learned(3, 1, until + std::chrono::seconds(1)));
    cache.forget(3);
    CHECK_FALSE(kept->learned(3, 1, until));
    CHECK(kept->learned(5, 1, until));
    cache.set_learned(*kept, 5, 2, until);
    CHECK(kept->learned(5, 2, until));
    cache.clear();
    CHECK(cache.bytes() == 0);
    cache.set_learned(*kept, 6, 2, until);
    CHECK(cache.bytes() == 0);
}
