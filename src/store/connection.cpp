#include "store/connection.hpp"

namespace opensandbox::store {

Result<std::unique_ptr<Connection>> Connection::open(const std::filesystem::path& file,
                                                     std::chrono::milliseconds patience) {
    auto lock = StateLock::acquire_store(file);
    if (!lock) return lock.error();
    auto database = Database::open(file, patience);
    if (!database) return database.error();
    if (auto migrated = migrate(*database); !migrated) return migrated.error();
    return std::unique_ptr<Connection>(
        new Connection(std::move(lock.value()), std::move(database.value()), patience));
}

Result<Connection::Lease> Connection::lease() {
    using namespace std::chrono;
    auto begin = steady_clock::now();
    std::unique_lock lock(mutex_, patience_);
    if (!lock.owns_lock()) {
        return Error(ErrorCode::unavailable, "store: busy with other writes; try again later");
    }
    auto waited = duration_cast<milliseconds>(steady_clock::now() - begin);
    database_.set_patience(waited < patience_ ? patience_ - waited : milliseconds(1));
    return Lease(std::move(lock), database_);
}

}  // namespace opensandbox::store
