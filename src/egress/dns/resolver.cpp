#include "egress/dns/resolver.hpp"

#include "base/log.hpp"
#include "egress/dns/query_limits.hpp"
#include "net/dns/wire_reader.hpp"

#include <algorithm>

namespace opensandbox::egress::dns {

namespace {

namespace codec = net::dns;
using codec::ResponseCode;
using Clock = std::chrono::steady_clock;

CacheKey key_of(const codec::Query& query) {
    CacheKey key;
    key.name = query.question.name;
    key.type = query.question.type;
    key.dnssec = query.dnssec_ok;
    key.checking_disabled = query.checking_disabled;
    return key;
}

UpstreamQuestion upstream_question(const codec::Query& query, std::string_view message) {
    UpstreamQuestion question;
    const std::size_t name = query.question_end - codec::kHeaderSize - 4;
    question.name = codec::lower_case(message.substr(codec::kHeaderSize, name));
    question.type = query.question.type;
    question.dnssec = query.dnssec_ok;
    question.checking_disabled = query.checking_disabled;
    return question;
}

/// How long an answer opens what it names (network 1.4).
std::chrono::seconds lifetime(std::uint32_t ttl) {
    constexpr std::uint32_t kGrace = 60;
    constexpr std::uint32_t kLeast = 60;
    constexpr std::uint32_t kMost = 360;
    return std::chrono::seconds(ttl >= kMost ? kMost : std::clamp(ttl + kGrace, kLeast, kMost));
}

std::uint32_t left(std::uint32_t ttl, std::uint32_t age) {
    return ttl > age ? ttl - age : 0;
}

}  // namespace

struct Resolver::Job {
    Job(ClientId c, const codec::Query& q, std::string_view m, bool t)
        : client(c), query(&q), message(m), tcp(t) {}
    ClientId client;
    const codec::Query* query;
    std::string_view message;
    bool tcp;
    Verdict verdict;
    [[nodiscard]] const codec::Question& question() const { return query->question; }
};

/// What came of looking at an answer for one client.
struct Resolver::Served {
    Served() = default;
    std::optional<Refusal> refusal;
    Verdict verdict;  ///< of the whole chain
    std::shared_ptr<const Answer> answer;
    std::uint32_t age = 0;
    std::size_t removed = 0;               ///< inner addresses
    std::vector<LearnedAddress> to_learn;  ///< before the answer may be sent
    Time until;                            ///< that they are open then
};

Resolver::Resolver(asio::any_io_executor executor, ProxySettings settings, Neighbours neighbours)
    : settings_(std::move(settings)),
      neighbours_(std::move(neighbours)),
      clients_(settings_.clients),
      cache_(settings_.cache),
      forwarder_(std::make_shared<Forwarder>(executor, settings_.upstream, settings_.cache,
                                             settings_.strip_ech)) {}

void Resolver::start() {
    forwarder_->start();
}

void Resolver::stop() {
    stopped_ = true;
    forwarder_->stop();
}

void Resolver::forget(ClientId client) {
    clients_.forget(client);
    cache_.forget(client);
}

Turn Resolver::connection_turn(ClientId client) {
    return clients_.connection_turn(clients_.share(client, Clock::now()));
}

Refusal Resolver::denied(std::string reason) const {
    const bool refused = settings_.denial == DenialAnswer::refused;
    return {refused ? ResponseCode::refused : ResponseCode::no_such_name, ExtendedError::blocked,
            std::move(reason)};
}

/// Policy and form of the query; fills in the verdict.
std::optional<Refusal> Resolver::judge(Job& job) {
    const codec::Question& question = job.question();
    if (question.dns_class != codec::kClassInternet) {
        return Refusal(ResponseCode::refused, ExtendedError::prohibited,
                       "only class IN is answered");
    }
    if (auto reason = refused_type(question.type, settings_.types)) {
        return Refusal(ResponseCode::refused, ExtendedError::prohibited, std::move(*reason));
    }
    job.verdict = neighbours_.gate->judge(job.client, question.name, question.type);
    if (!job.verdict.allowed) return denied(job.verdict.reason);
    if (job.verdict.exact) return std::nullopt;
    auto reason = passed_limit(question.name, settings_.names);
    if (!reason) return std::nullopt;
    Refusal refusal = denied(std::move(*reason));
    refusal.info = ExtendedError::prohibited;
    return refusal;
}

/// The client's rate, then what judge() says.
std::optional<Refusal> Resolver::admit(Job& job, ClientShare& share, Time now) {
    const ClientLimits& limits = settings_.clients;
    if (share.queries.admit(limits.queries_per_second, limits.queries_burst, now)) {
        return judge(job);
    }
    return Refusal(ResponseCode::refused, ExtendedError::prohibited,
                   "too many queries in a short time");
}

/// Limits of what a client may have asked of upstreams.
std::optional<Refusal> Resolver::admit_forwarding(const Job& job, ClientShare& share, Time now) {
    const ClientLimits& limits = settings_.clients;
    if (!share.forwarded.admit(limits.forwarded_per_second, limits.forwarded_burst, now)) {
        return Refusal(ResponseCode::refused, ExtendedError::prohibited,
                       "too many queries in a short time");
    }
    const std::string& name = job.question().name;
    if (job.verdict.exact ||
        share.spread.admit(registered_part(name), name, settings_.names.distinct, now)) {
        return std::nullopt;
    }
    Refusal refusal = denied("too many different names below one domain in a minute");
    refusal.info = ExtendedError::prohibited;
    return refusal;
}

void Resolver::refuse(const Job& job, const Refusal& refusal, std::string& reply) {
    ++statistics_.denied;
    if (neighbours_.observer) {
        Denial denial;
        denial.client = job.client;
        denial.name = job.question().name;
        denial.type = job.question().type;
        denial.reason = refusal.text;
        denial.time = std::chrono::system_clock::now();
        neighbours_.observer(denial);
    }
    write_refusal(refusal, *job.query, job.message, reply);
}

void Resolver::fail(const Job& job, ExtendedError info, std::string_view text, std::string& reply) {
    const Refusal refusal(ResponseCode::server_failure, info, std::string(text));
    write_refusal(refusal, *job.query, job.message, reply);
}

void Resolver::write(const Job& job, const Answer& answer, std::uint32_t age, std::string& reply) {
    const std::size_t limit = answer_limit(*job.query, job.tcp, settings_.udp_answer);
    if (!write_answer(answer, *job.query, job.message, age, limit, reply)) {
        ++statistics_.truncated;
    }
}

/// Judges the chain of aliases, takes inner addresses out, and sees what is left to be learned.
Resolver::Served Resolver::serve(const Job& job, const std::shared_ptr<CacheEntry>& entry,
                                 Time now) {
    Served served;
    served.answer = entry->answer();
    served.age = entry->age(now);
    served.verdict = job.verdict;
    if (!served.answer->chain.empty()) {
        served.verdict =
            neighbours_.gate->judge_chain(job.client, served.answer->chain, job.question().type);
        if (!served.verdict.allowed) {
            served.refusal = denied(std::move(served.verdict.reason));
            return served;
        }
    }
    if (served.answer->inner) {
        const std::string& name = job.question().name;
        auto filtered = without_inner(served.answer, [&](const asio::ip::address& address) {
            return neighbours_.gate->allows_inner(job.client, name, address);
        });
        served.removed = filtered.removed;
        if (filtered.emptied) {
            served.refusal = denied("the name leads to an inner address only (rebinding)");
            return served;
        }
        served.answer = std::move(filtered.answer);
    }
    if (!neighbours_.sink || served.answer->addresses.empty()) return served;
    std::uint32_t longest = 0;
    for (const AnswerAddress& address : served.answer->addresses)
        longest = std::max(longest, left(address.ttl, served.age));
    served.until = now + lifetime(longest);
    // Ages are whole seconds.
    const Time enough = served.until - std::chrono::seconds(1);
    if (entry->learned(job.client, served.verdict.generation, enough)) return served;
    for (const AnswerAddress& address : served.answer->addresses)
        served.to_learn.emplace_back(address.address, lifetime(left(address.ttl, served.age)));
    return served;
}

/// Answers from what is kept, or refuses to; false when addresses have to be learned first.
bool Resolver::answer_kept(const Job& job, const std::shared_ptr<CacheEntry>& entry, Time now,
                           std::string& reply) {
    ++statistics_.cache_hits;
    const Served served = serve(job, entry, now);
    if (!served.to_learn.empty()) return false;
    statistics_.rebinding_removed += served.removed;
    if (served.refusal) {
        refuse(job, *served.refusal, reply);
    } else {
        write(job, *served.answer, served.age, reply);
    }
    return true;
}

std::optional<PendingQuery> Resolver::answer_now(ClientId client, std::string_view message,
                                                 bool tcp, std::string& reply) {
    reply.clear();
    ++statistics_.queries;
    auto query = codec::parse_query(message);
    if (!query) {
        ++statistics_.malformed;
        reply = malformed_reply(message);
        return std::nullopt;
    }
    if (query->edns_version != 0) {
        write_bad_version(*query, message, reply);
        return std::nullopt;
    }
    Job job(client, *query, message, tcp);
    const Time now = Clock::now();
    const auto share = clients_.share(client, now);
    auto refusal = admit(job, *share, now);
    std::shared_ptr<CacheEntry> entry;
    if (!refusal) entry = cache_.find(key_of(*query), now);
    if (entry && answer_kept(job, entry, now, reply)) return std::nullopt;
    if (!refusal && !entry) refusal = admit_forwarding(job, *share, now);
    if (refusal) {
        refuse(job, *refusal, reply);
        return std::nullopt;
    }
    PendingQuery pending;
    pending.turn = clients_.query_turn(share);
    if (!pending.turn.taken()) {
        ++statistics_.overload_dropped;
        if (tcp) fail(job, ExtendedError::not_ready, "too many queries wait", reply);
        return std::nullopt;
    }
    pending.client = client;
    pending.message = message;
    pending.tcp = tcp;
    pending.entry = std::move(entry);
    pending.query = std::move(*query);
    return pending;
}

/// The answer from upstream, or of whoever asks the same just now; null when there is none.
Awaitable<std::shared_ptr<CacheEntry>> Resolver::fetch(std::shared_ptr<Resolver> self,
                                                       PendingQuery& pending) {
    // What comes is kept even if this query waits no more.
    Forwarder::Keep keep = [self](const std::shared_ptr<CacheEntry>& entry) {
        self->cache_.put(entry);
    };
    bool shared = false;
    auto entry = co_await Forwarder::ask_once(self->forwarder_, key_of(pending.query),
                                              upstream_question(pending.query, pending.message),
                                              std::move(keep), shared);
    if (shared) ++self->statistics_.shared;
    co_return entry;
}

Awaitable<bool> Resolver::learn(std::shared_ptr<Resolver> self, PendingQuery& pending,
                                Served served) {
    const Status learned =
        co_await self->neighbours_.sink->learn(pending.client, pending.query.question.name,
                                               std::move(served.to_learn), served.verdict.scope);
    if (learned) {
        self->cache_.set_learned(*pending.entry, pending.client, served.verdict.generation,
                                 served.until);
        co_return true;
    }
    ++self->statistics_.learn_failures;
    log::warn("addresses of a name could not be opened",
              {{"name", pending.query.question.name}, {"reason", learned.error().message()}});
    co_return false;
}

Awaitable<std::string> Resolver::answer(std::shared_ptr<Resolver> self, PendingQuery pending) {
    std::string reply;
    Job job(pending.client, pending.query, pending.message, pending.tcp);
    if (!pending.entry) {
        const Time start = Clock::now();
        pending.entry = co_await fetch(self, pending);
        if (self->stopped_) co_return reply;
        const std::chrono::duration<double> took = Clock::now() - start;
        self->statistics_.forwarded_seconds.observe(took.count());
        if (!pending.entry) {
            ++self->statistics_.failed;
            if (self->neighbours_.unresolved) {
                self->neighbours_.unresolved(pending.query.question.name);
            }
            self->fail(job, ExtendedError::no_reachable_authority, "no upstream resolver answers",
                       reply);
            co_return reply;
        }
        ++self->statistics_.forwarded;
    }
    // Policy may have changed meanwhile, now and while addresses are learned.
    std::optional<std::uint64_t> learned_under;
    constexpr int kMaxRounds = 3;
    for (int round = 0; round < kMaxRounds; ++round) {
        auto refusal = self->judge(job);
        Served served;
        if (!refusal) served = self->serve(job, pending.entry, Clock::now());
        if (!refusal) refusal = std::move(served.refusal);
        const bool learned = served.to_learn.empty() || learned_under == served.verdict.generation;
        if (refusal || learned) self->statistics_.rebinding_removed += served.removed;
        if (refusal) {
            self->refuse(job, *refusal, reply);
            co_return reply;
        }
        if (learned) {
            self->write(job, *served.answer, served.age, reply);
            co_return reply;
        }
        const std::uint64_t generation = served.verdict.generation;
        const bool opened = co_await learn(self, pending, std::move(served));
        if (self->stopped_) co_return reply;
        if (!opened) break;
        learned_under = generation;
    }
    self->fail(job, ExtendedError::not_ready, "the addresses could not be opened", reply);
    co_return reply;
}

}  // namespace opensandbox::egress::dns
