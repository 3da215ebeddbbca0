#pragma once

#include "egress/policy/serial_turns.hpp"

#include <map>
#include <memory>
#include <string>
#include <utility>

namespace opensandbox::egress {

/// Lets coroutines of one event loop through one after another for each key.
class KeyedTurns {
  public:
    /// Holds the key's turn until destroyed.
    class Turn {
      public:
        Turn(std::shared_ptr<SerialTurns> turns, SerialTurns::Turn turn)
            : turns_(std::move(turns)), turn_(std::move(turn)) {}

      private:
        std::shared_ptr<SerialTurns> turns_;  ///< kept while somebody is in it
        SerialTurns::Turn turn_;
    };

    explicit KeyedTurns(asio::any_io_executor executor) : executor_(std::move(executor)) {}

    Awaitable<Turn> take(std::string key) {
        std::erase_if(turns_, [](const auto& item) { return item.second.use_count() == 1; });
        auto& kept = turns_[key];
        if (!kept) kept = std::make_shared<SerialTurns>(executor_);
        std::shared_ptr<SerialTurns> turns = kept;
        SerialTurns::Turn turn = co_await turns->take();
        co_return Turn(std::move(turns), std::move(turn));
    }

  private:
    asio::any_io_executor executor_;
    std::map<std::string, std::shared_ptr<SerialTurns>> turns_;
};

}  // namespace opensandbox::egress
