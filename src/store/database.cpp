#include "store/database.hpp"

#include "base/unique_fd.hpp"

#include <sqlite3.h>
#include <sys/stat.h>

#include <cerrno>
#include <fcntl.h>
#include <utility>

namespace opensandbox::store {
namespace {

constexpr std::string_view kDiskFull =
    "store: the disk that holds the database is full; nothing was written";

Error failure(sqlite3* handle, std::string_view what) {
    int code = handle ? sqlite3_errcode(handle) : SQLITE_NOMEM;
    switch (code) {
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
            return {ErrorCode::unavailable,
                    "store: another program holds the database; try again later"};
        case SQLITE_FULL: return {ErrorCode::unavailable, std::string(kDiskFull)};
        case SQLITE_READONLY:
            return {ErrorCode::unavailable, "store: the database cannot be written to"};
        default: break;
    }
    ErrorCode kind = code == SQLITE_NOMEM        ? ErrorCode::unavailable
                     : code == SQLITE_CONSTRAINT ? ErrorCode::conflict
                                                 : ErrorCode::io;
    std::string message = "store: " + std::string(what) + ": ";
    message += handle ? sqlite3_errmsg(handle) : "out of memory";
    return {kind, std::move(message)};
}

}  // namespace

bool is_disk_full(const Error& error) {
    return error.code() == ErrorCode::unavailable && error.message() == kDiskFull;
}

void Statement::Finalize::operator()(sqlite3_stmt* statement) const {
    sqlite3_finalize(statement);
}

void Statement::bind(int index, std::string_view text) {
    sqlite3_bind_text64(handle_.get(), index, text.data() ? text.data() : "", text.size(),
                        SQLITE_TRANSIENT, SQLITE_UTF8);
}

void Statement::bind(int index, std::int64_t number) {
    sqlite3_bind_int64(handle_.get(), index, number);
}

void Statement::bind_null(int index) {
    sqlite3_bind_null(handle_.get(), index);
}

void Statement::bind(int index, const std::optional<std::int64_t>& number) {
    if (number) {
        bind(index, *number);
    } else {
        bind_null(index);
    }
}

Result<bool> Statement::step() {
    int code = sqlite3_step(handle_.get());
    if (code == SQLITE_ROW) return true;
    if (code == SQLITE_DONE) return false;
    return failure(sqlite3_db_handle(handle_.get()), sqlite3_sql(handle_.get()));
}

Status Statement::run() {
    while (true) {
        auto more = step();
        if (more && more.value()) continue;
        reset();
        if (!more) return more.error();
        return {};
    }
}

void Statement::reset() {
    sqlite3_reset(handle_.get());
    sqlite3_clear_bindings(handle_.get());
}

std::string Statement::text(int column) const {
    const auto* bytes = static_cast<const char*>(sqlite3_column_blob(handle_.get(), column));
    int size = sqlite3_column_bytes(handle_.get(), column);
    return bytes ? std::string(bytes, static_cast<std::size_t>(size)) : std::string();
}

std::int64_t Statement::number(int column) const {
    return sqlite3_column_int64(handle_.get(), column);
}

bool Statement::is_null(int column) const {
    return sqlite3_column_type(handle_.get(), column) == SQLITE_NULL;
}

void Database::Close::operator()(sqlite3* handle) const {
    sqlite3_close_v2(handle);
}

void Database::set_patience(std::chrono::milliseconds patience) {
    sqlite3_busy_timeout(handle_.get(), static_cast<int>(patience.count()));
}

Result<Database> Database::open(const std::filesystem::path& file,
                                std::chrono::milliseconds patience) {
    // Made here, so that neither it nor the journals that copy its mode are ever readable by
    // others.
    UniqueFd created(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!created) return Error::from_errno(errno, "store: open " + file.string());
    if (::fchmod(created.get(), 0600) != 0) {
        return Error::from_errno(errno, "store: set the mode of " + file.string());
    }
    created.reset();

    Database database;
    sqlite3* raw = nullptr;
    int code =
        sqlite3_open_v2(file.c_str(), &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
    database.handle_.reset(raw);
    if (code != SQLITE_OK) return failure(raw, "open " + file.string());
    sqlite3_extended_result_codes(raw, 0);
    database.set_patience(patience);
    auto configured = database.execute(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON;");
    if (!configured) return configured.error();
    return database;
}

Result<Statement> Database::prepare(std::string_view sql) {
    Statement statement;
    sqlite3_stmt* raw = nullptr;
    int code = sqlite3_prepare_v3(handle_.get(), sql.data(), static_cast<int>(sql.size()),
                                  SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
    statement.handle_.reset(raw);
    if (code != SQLITE_OK) return failure(handle_.get(), sql);
    return statement;
}

Status Database::execute(const std::string& sql) {
    if (sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
        return failure(handle_.get(), sql);
    }
    return {};
}

Status Database::begin() {
    return execute("BEGIN IMMEDIATE");
}
Status Database::commit() {
    return execute("COMMIT");
}
void Database::rollback() {
    // Fails only when the engine already rolled back by itself.
    (void)execute("ROLLBACK");
}

Result<Transaction> Transaction::begin(Database& database) {
    if (auto begun = database.begin(); !begun) return begun.error();
    return Transaction(database);
}

Transaction::Transaction(Transaction&& other) noexcept
    : database_(std::exchange(other.database_, nullptr)) {}

Transaction::~Transaction() {
    if (database_) database_->rollback();
}

Status Transaction::commit() {
    auto committed = database_->commit();
    if (committed) database_ = nullptr;
    return committed;
}

}  // namespace opensandbox::store
