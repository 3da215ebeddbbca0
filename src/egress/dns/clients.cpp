#include "egress/dns/clients.hpp"

#include <utility>

namespace opensandbox::egress::dns {

namespace {

constexpr std::chrono::seconds kQuiet{120};

}  // namespace

Turn::Turn(std::shared_ptr<ClientShare> share, std::size_t ClientShare::* own, std::size_t most,
           std::shared_ptr<std::size_t> all, std::size_t most_of_all) {
    if (share.get()->*own >= most || *all >= most_of_all) return;
    ++(share.get()->*own);
    ++*all;
    share_ = std::move(share);
    own_ = own;
    all_ = std::move(all);
}

Turn::~Turn() {
    release();
}

Turn::Turn(Turn&& other) noexcept
    : share_(std::move(other.share_)), own_(other.own_), all_(std::move(other.all_)) {}

Turn& Turn::operator=(Turn&& other) noexcept {
    if (this == &other) return *this;
    release();
    share_ = std::move(other.share_);
    own_ = other.own_;
    all_ = std::move(other.all_);
    return *this;
}

void Turn::release() {
    if (!share_) return;
    --(share_.get()->*own_);
    --*all_;
    share_ = nullptr;
}

std::shared_ptr<ClientShare> Clients::share(ClientId client, Time now) {
    if (now - swept_ >= kQuiet) sweep(now);
    auto& share = shares_[client];
    if (!share) share = std::make_shared<ClientShare>();
    return share;
}

Turn Clients::query_turn(const std::shared_ptr<ClientShare>& share) {
    return {share, &ClientShare::in_flight, limits_.in_flight, in_flight_, limits_.all_in_flight};
}

Turn Clients::connection_turn(const std::shared_ptr<ClientShare>& share) {
    return {share, &ClientShare::connections, limits_.connections, connections_,
            limits_.all_connections};
}

/// A share that somebody holds besides is in use.
void Clients::sweep(Time now) {
    swept_ = now;
    std::erase_if(shares_, [&](const auto& each) {
        const ClientShare& share = *each.second;
        return each.second.use_count() == 1 && now - share.queries.last() >= kQuiet &&
               now - share.forwarded.last() >= kQuiet && share.spread.idle(now);
    });
}

}  // namespace opensandbox::egress::dns
