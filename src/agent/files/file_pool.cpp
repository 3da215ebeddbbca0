#include "agent/files/file_pool.hpp"

#include <chrono>
#include <malloc.h>

namespace opensandbox::agent {
namespace {

constexpr std::size_t kThreads = 2;
constexpr std::chrono::seconds kIdle{5};

}  // namespace

FilePool::FilePool(asio::any_io_executor executor) : executor_(std::move(executor)) {}

FilePool::~FilePool() {
    finish();
}

void FilePool::finish() {
    idle_end_.reset();
    for (const FinishHook* hook : hooks_)
        hook->action_();
    if (pool_) pool_->join();
}

asio::thread_pool& FilePool::threads() {
    idle_end_.reset();
    if (!pool_) pool_ = std::make_unique<asio::thread_pool>(kThreads);
    return *pool_;
}

void FilePool::idle() {
    if (!pool_) return;
    idle_end_ = std::make_unique<net::Deadline>(executor_, kIdle, [this] {
        // No work is in flight: the threads wait and end at once.
        if (in_flight_ > 0) return;
        pool_.reset();
        ::malloc_trim(0);
    });
}

}  // namespace opensandbox::agent
