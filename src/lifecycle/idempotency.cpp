#include "lifecycle/idempotency.hpp"

#include "base/digest.hpp"

#include <algorithm>

namespace opensandbox::lifecycle {
namespace {

constexpr std::size_t kMaxKey = 255;

}  // namespace

Error reused_key(const std::string& key) {
    return {ErrorCode::conflict, "IDEMPOTENCY_KEY_REUSED",
            "Idempotency-Key '" + key + "' was already used with another request body."};
}

Result<IdempotencyKey> make_idempotency_key(std::string_view header, std::string_view body) {
    bool visible = std::ranges::all_of(header, [](char c) { return c > ' ' && c < 0x7f; });
    if (header.empty() || header.size() > kMaxKey || !visible) {
        return Error(ErrorCode::invalid_argument, "SANDBOX::INVALID_PARAMETER",
                     "Idempotency-Key: must be 1 to 255 visible ASCII characters.");
    }
    return IdempotencyKey(std::string(header), sha256_hex(body));
}

KeyTable::Verdict KeyTable::decide(const IdempotencyKey& key, Timestamp now) {
    Verdict verdict;
    if (auto flight = in_flight_.find(key.key); flight != in_flight_.end()) {
        if (flight->second.body_digest != key.body_digest) {
            verdict.error = reused_key(key.key);
        } else {
            verdict.wait = flight->second.done;
        }
        return verdict;
    }
    auto made = made_.find(key.key);
    if (made == made_.end() || made->second.created_at + kKeyLifetime <= now) return verdict;
    if (made->second.body_digest != key.body_digest) {
        verdict.error = reused_key(key.key);
    } else {
        verdict.sandbox_id = made->second.sandbox_id;
    }
    return verdict;
}

void KeyTable::begin(const IdempotencyKey& key) {
    InFlight flight{key.body_digest, std::make_shared<net::Latch>(executor_)};
    in_flight_.insert_or_assign(key.key, std::move(flight));
}

void KeyTable::finish(const IdempotencyKey& key, const std::optional<store::KeyRecord>& made) {
    if (made) made_.insert_or_assign(made->key, *made);
    auto flight = in_flight_.find(key.key);
    if (flight == in_flight_.end()) return;
    auto done = flight->second.done;
    in_flight_.erase(flight);
    done->open();
}

void KeyTable::load(std::vector<store::KeyRecord> records) {
    for (auto& record : records) {
        std::string key = record.key;
        made_.insert_or_assign(std::move(key), std::move(record));
    }
}

bool KeyTable::forget_before(Timestamp limit) {
    return std::erase_if(made_,
                         [&](const auto& entry) { return entry.second.created_at < limit; }) > 0;
}

}  // namespace opensandbox::lifecycle
