#include "http/client_pool.hpp"

#include "base/descriptor_limit.hpp"

#include <algorithm>

namespace opensandbox::http {

using std::chrono::steady_clock;

namespace {

constexpr std::size_t kMostKept = 1024;

}  // namespace

ClientPool::ClientPool(asio::any_io_executor executor, ClientOptions options)
    : executor_(executor),
      options_(options),
      timer_(executor),
      most_(std::min(kMostKept, descriptor_limit() / 8)) {}

std::unique_ptr<net::Stream> ClientPool::take(const std::string& origin) {
    auto found = kept_.find(origin);
    if (found == kept_.end()) return nullptr;
    auto& connections = found->second;
    auto oldest = steady_clock::now() - options_.idle_timeout;
    std::unique_ptr<net::Stream> stream;
    while (!connections.empty() && !stream) {
        Kept last = std::move(connections.back());
        connections.pop_back();
        --count_;
        if (last.since >= oldest && last.stream->quiet()) stream = std::move(last.stream);
    }
    if (connections.empty()) kept_.erase(found);
    return stream;
}

void ClientPool::put(const std::string& origin, std::unique_ptr<net::Stream> stream) {
    if (closed_ || options_.max_idle_per_origin == 0) return;
    auto& connections = kept_[origin];
    if (connections.size() >= options_.max_idle_per_origin) {
        connections.erase(connections.begin());
        --count_;
    }
    connections.push_back({std::move(stream), steady_clock::now()});
    ++count_;
    if (count_ > most_) drop_one(origin);
    if (!sweeping_) arm_sweep();
}

void ClientPool::drop_one(const std::string& last_used) {
    auto from = kept_.begin();
    if (kept_.size() > 1 && from->first == last_used) ++from;
    from->second.erase(from->second.begin());
    if (from->second.empty()) kept_.erase(from);
    --count_;
}

void ClientPool::close() {
    closed_ = true;
    kept_.clear();
    count_ = 0;
    timer_.cancel();
}

void ClientPool::arm_sweep() {
    constexpr std::chrono::milliseconds kShortest{10};
    sweeping_ = true;
    timer_.expires_after(std::max(options_.idle_timeout / 2, kShortest));
    timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& failure) {
        auto self = weak.lock();
        if (!failure && self && !self->closed_) self->sweep();
    });
}

void ClientPool::sweep() {
    auto oldest = steady_clock::now() - options_.idle_timeout;
    for (auto entry = kept_.begin(); entry != kept_.end();) {
        auto& connections = entry->second;
        auto end = std::remove_if(
            connections.begin(), connections.end(),
            [oldest](const Kept& kept) { return kept.since < oldest || !kept.stream->quiet(); });
        count_ -= static_cast<std::size_t>(connections.end() - end);
        connections.erase(end, connections.end());
        entry = connections.empty() ? kept_.erase(entry) : std::next(entry);
    }
    sweeping_ = false;
    if (!kept_.empty()) arm_sweep();
}

}  // namespace opensandbox::http
