#pragma once

#include "store/database.hpp"
#include "store/state_lock.hpp"

#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace opensandbox::store {

/// The one connection of a server to its file, shared by the stores of its tables. Holds the file
/// for this server. Thread-safe through leases.
class Connection {
  public:
    /// How long a write waits for other writers, of this program or of others, before it fails
    /// with `unavailable`.
    static constexpr std::chrono::milliseconds kPatience{5000};

    /// Opens the file, brings its schema up to date. `conflict` when another server has it open.
    static Result<std::unique_ptr<Connection>> open(const std::filesystem::path& file,
                                                    std::chrono::milliseconds patience = kPatience);

    /// The connection for one operation.
    class Lease {
      public:
        Lease(std::unique_lock<std::timed_mutex> lock, Database& database)
            : lock_(std::move(lock)), database_(&database) {}
        Database& operator*() const { return *database_; }
        Database* operator->() const { return database_; }

      private:
        std::unique_lock<std::timed_mutex> lock_;
        Database* database_;
    };

    /// Waits for its turn. What is left of the patience is for other programs that hold the file,
    /// so that a queue of writers does not add up their waits.
    Result<Lease> lease();

    /// For preparing statements while nobody else has the connection yet.
    Database& database() { return database_; }

  private:
    Connection(StateLock lock, Database database, std::chrono::milliseconds patience)
        : lock_(std::move(lock)), database_(std::move(database)), patience_(patience) {}

    StateLock lock_;
    Database database_;
    std::chrono::milliseconds patience_;
    std::timed_mutex mutex_;
};

/// The schema's part of that (migrations.cpp): runs the steps that the file has not seen yet, each
/// in a transaction; the version is kept in `user_version`. Fails with `unsupported` when the file
/// is newer than this program.
Status migrate(Database& database);

}  // namespace opensandbox::store
