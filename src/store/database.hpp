#pragma once

#include "base/error.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

/// SQLite behind types that own their handles.
namespace opensandbox::store {

/// Whether a write failed for want of space.
bool is_disk_full(const Error& error);

/// A prepared statement. Bind, step, read; reset() makes it ready for the next use.
class Statement {
  public:
    Statement() = default;

    void bind(int index, std::string_view text);
    void bind(int index, std::int64_t number);
    void bind_null(int index);
    void bind(int index, const std::optional<std::int64_t>& number);

    /// True when there is a row to read, false at the end.
    Result<bool> step();
    /// Runs to the end and resets, whatever came out.
    Status run();
    void reset();

    [[nodiscard]] std::string text(int column) const;
    [[nodiscard]] std::int64_t number(int column) const;
    [[nodiscard]] bool is_null(int column) const;

  private:
    friend class Database;
    struct Finalize {
        void operator()(sqlite3_stmt* statement) const;
    };
    std::unique_ptr<sqlite3_stmt, Finalize> handle_;
};

/// One connection; a file that another program holds gives `unavailable`, and so does a full disk:
/// nothing was written and the connection stays usable. WAL, synchronous NORMAL (a crash of the
/// machine may lose the last commits but never damages the file), busy timeout, foreign keys. Not
/// thread-safe.
class Database {
  public:
    /// Makes the file with mode 0600. `patience` is how long an operation waits for another
    /// program that holds the file.
    static Result<Database> open(
        const std::filesystem::path& file,
        std::chrono::milliseconds patience = std::chrono::milliseconds(5000));
    void set_patience(std::chrono::milliseconds patience);

    Result<Statement> prepare(std::string_view sql);
    /// One or more statements without results.
    Status execute(const std::string& sql);
    Status begin();
    Status commit();
    void rollback();

  private:
    struct Close {
        void operator()(sqlite3* handle) const;
    };
    std::unique_ptr<sqlite3, Close> handle_;
};

/// Rolls back unless committed.
class Transaction {
  public:
    static Result<Transaction> begin(Database& database);
    Transaction(Transaction&& other) noexcept;
    Transaction& operator=(Transaction&&) = delete;
    ~Transaction();
    Status commit();

  private:
    explicit Transaction(Database& database) : database_(&database) {}
    Database* database_;
};

}  // namespace opensandbox::store
