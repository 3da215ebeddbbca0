#include "egress/dns/flights.hpp"

#include "net/stream.hpp"
#include "net/task.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace opensandbox::egress::dns {

namespace {}  // namespace

/// The timer never fires: cancelling it wakes all who wait.
struct Flights::Flight {
    Flight(const asio::any_io_executor& executor, const CacheKey& k)
        : name(k.name), key(k), landed(executor, asio::steady_timer::time_point::max()) {
        key.name = name;
    }
    std::string name;
    CacheKey key;
    asio::steady_timer landed;
    bool done = false;
    std::shared_ptr<CacheEntry> entry;
};

Awaitable<std::shared_ptr<CacheEntry>> Flights::join(std::shared_ptr<Flights> self, CacheKey key,
                                                     Work work, bool& shared) {
    const auto found = self->by_key_.find(key);
    shared = found != self->by_key_.end();
    std::shared_ptr<Flight> flight;
    if (shared) {
        flight = found->second;
    } else {
        flight = std::make_shared<Flight>(self->executor_, key);
        self->by_key_.emplace(flight->key, flight);
        net::spawn(self->executor_, fly(self, flight, std::move(work)), "dns: a question");
    }
    while (!flight->done)
        co_await flight->landed.async_wait(as_tuple_awaitable);
    co_return flight->entry;
}

Awaitable<void> Flights::fly(std::shared_ptr<Flights> self, std::shared_ptr<Flight> flight,
                             Work work) {
    try {
        flight->entry = co_await work();
    } catch (const std::exception&) {
        // Out of memory, say: those who wait get no answer, which is all that can be done.
        flight->entry = nullptr;
    }
    flight->done = true;
    self->by_key_.erase(flight->key);
    flight->landed.cancel();
}

}  // namespace opensandbox::egress::dns
