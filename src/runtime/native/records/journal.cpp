#include "runtime/native/records/journal.hpp"

#include "base/identifier.hpp"
#include "base/log.hpp"
#include "base/replace_file.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <fcntl.h>
#include <map>
#include <unistd.h>

namespace opensandbox::runtime::native {

namespace fs = std::filesystem;

namespace {

/// Of a few hundred bytes each.
constexpr std::size_t kMostSpares = 256;

std::string one_line(std::string text) {
    std::ranges::replace(text, '\n', ' ');
    return text;
}

/// Reads numbers by key and remembers whether all were there.
class Lines {
  public:
    explicit Lines(std::string_view text) {
        while (!text.empty()) {
            const std::size_t end = text.find('\n');
            const std::string_view line = text.substr(0, end);
            text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
            const std::size_t blank = line.find(' ');
            if (blank == std::string_view::npos)
                good_ = good_ && line.empty();
            else
                values_[std::string(line.substr(0, blank))] = line.substr(blank + 1);
        }
    }

    template <class T>
    T number(const std::string& key) {
        T value{};
        const std::string_view text = this->text(key);
        const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
        if (result.ec != std::errc{} || result.ptr != text.data() + text.size()) good_ = false;
        return value;
    }

    std::string_view text(const std::string& key) {
        const auto found = values_.find(key);
        if (found != values_.end()) return found->second;
        good_ = false;
        return {};
    }

    [[nodiscard]] bool has(const std::string& key) const { return values_.contains(key); }
    [[nodiscard]] bool good() const { return good_; }

  private:
    std::map<std::string, std::string_view> values_;
    bool good_ = true;
};

}  // namespace

std::string format_entry(const JournalEntry& entry) {
    std::string out = "id " + entry.id + "\nserial " + std::to_string(entry.slot.serial) +
                      "\nindex " + std::to_string(entry.slot.index) + "\npid " +
                      std::to_string(entry.pid) + "\nstart " + std::to_string(entry.start_time) +
                      "\nport " + std::to_string(entry.port) + "\n";
    if (!entry.boot.empty()) out += "boot " + one_line(entry.boot) + "\n";
    if (!entry.digest.empty()) out += "digest " + one_line(entry.digest) + "\n";
    if (entry.address6) out += "address6 " + entry.address6->to_string() + "\n";
    if (entry.paused) out += "paused 1\n";
    if (entry.exit) {
        out += "code " + std::to_string(entry.exit->code) + "\nsignal " +
               std::to_string(entry.exit->signal) + "\nreason " + one_line(entry.exit->reason) +
               "\nmessage " + one_line(entry.exit->message) + "\nat " +
               std::to_string(entry.exit->at.time_since_epoch().count()) + "\n";
    }
    return out;
}

Result<JournalEntry> parse_entry(std::string_view text) {
    Lines lines(text);
    JournalEntry entry;
    entry.id = lines.text("id");
    entry.slot.serial = lines.number<std::uint32_t>("serial");
    entry.slot.index = lines.number<std::uint32_t>("index");
    entry.pid = lines.number<pid_t>("pid");
    entry.start_time = lines.number<std::uint64_t>("start");
    entry.port = lines.number<std::uint16_t>("port");
    if (lines.has("boot")) entry.boot = lines.text("boot");
    if (lines.has("digest")) entry.digest = lines.text("digest");
    if (lines.has("address6")) {
        boost::system::error_code wrong;
        const auto address =
            boost::asio::ip::make_address_v6(std::string(lines.text("address6")), wrong);
        if (wrong) return Error(ErrorCode::invalid_argument, "journal entry: address6");
        entry.address6 = address;
    }
    entry.paused = lines.has("paused");
    if (lines.has("code")) {
        Exit& exit = entry.exit.emplace();
        exit.code = lines.number<int>("code");
        exit.signal = lines.number<int>("signal");
        exit.reason = lines.text("reason");
        exit.message = lines.text("message");
        exit.at = Timestamp(std::chrono::microseconds(lines.number<std::int64_t>("at")));
    }
    if (!lines.good() || !is_uuid(entry.id) || entry.pid <= 1 || entry.slot.serial > 0xff'ffff) {
        return Error(ErrorCode::invalid_argument, "journal entry: malformed");
    }
    return entry;
}

Result<Journal> Journal::open(fs::path directory) {
    fs::path spares = directory;
    spares += ".spare";
    for (const fs::path& path : {directory, spares}) {
        if (::mkdir(path.c_str(), 0700) < 0 && errno != EEXIST) {
            return last_error("mkdir " + path.string());
        }
    }
    // What an earlier life kept has names that this one gives.
    std::error_code error;
    for (const auto& file : fs::directory_iterator(spares, error))
        ::unlink(file.path().c_str());
    return Journal(std::move(directory), std::move(spares));
}

fs::path Journal::take_spare() {
    if (spare_files_.empty()) return spares_ / std::to_string(++last_spare_);
    fs::path file = std::move(spare_files_.back());
    spare_files_.pop_back();
    return file;
}

Status Journal::write(const JournalEntry& entry) {
    const fs::path path = directory_ / entry.id;
    const fs::path aside = take_spare();
    if (auto s = overwrite_file(aside, format_entry(entry)); !s) return s;
    if (::renameat2(AT_FDCWD, aside.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0) {
        return {};
    }
    // The entry that it replaces is the next spare.
    if (errno == EEXIST &&
        ::renameat2(AT_FDCWD, aside.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0) {
        spare_files_.push_back(aside);
        return {};
    }
    // Some file systems know neither.
    if (::rename(aside.c_str(), path.c_str()) == 0) return {};
    const int number = errno;
    ::unlink(aside.c_str());
    return Error::from_errno(number, "replace " + path.string());
}

void Journal::remove(const std::string& id) {
    const fs::path path = directory_ / id;
    if (spare_files_.size() < kMostSpares) {
        fs::path spare = spares_ / std::to_string(++last_spare_);
        if (::rename(path.c_str(), spare.c_str()) == 0) {
            spare_files_.push_back(std::move(spare));
            return;
        }
    }
    ::unlink(path.c_str());
}

Result<std::vector<JournalEntry>> Journal::read_all() const {
    std::vector<JournalEntry> entries;
    std::error_code error;
    for (const auto& file : fs::directory_iterator(directory_, error)) {
        auto text = read_file(file.path());
        if (!text) return text.error();
        auto entry = parse_entry(*text);
        if (entry && entry->id == file.path().filename().string()) {
            entries.push_back(std::move(*entry));
            continue;
        }
        log::warn("journal entry is unreadable and dropped", {{"path", file.path().string()}});
        ::unlink(file.path().c_str());
    }
    if (error) return Error(ErrorCode::io, "read " + directory_.string() + ": " + error.message());
    return entries;
}

}  // namespace opensandbox::runtime::native
