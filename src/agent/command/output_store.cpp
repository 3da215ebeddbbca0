#include "agent/command/output_store.hpp"

#include "base/json_string.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

constexpr std::uint64_t kPunchUnit = std::uint64_t{1} << 20;
constexpr int kFlags = O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW;

}  // namespace

OutputFile::OutputFile(UniqueFd fd, std::string path)
    : fd_(std::move(fd)), path_(std::move(path)) {}

OutputFile::~OutputFile() {
    if (!path_.empty()) ::unlink(path_.c_str());
}

void OutputFile::release() {
    if (!path_.empty()) fd_.reset();
}

Result<OutputPage> OutputFile::read(std::uint64_t cursor, std::size_t limit, bool growing) {
    UniqueFd opened;
    int fd = fd_.get();
    if (fd < 0) {
        opened.reset(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
        if (!opened) return Error::from_errno(errno, "open the command's output");
        fd = opened.get();
    }
    struct stat info{};
    if (::fstat(fd, &info) != 0) return Error::from_errno(errno, "read the command's output");
    auto size = static_cast<std::uint64_t>(info.st_size);
    OutputPage page;
    page.next = cursor;
    if (cursor >= size) return page;
    std::uint64_t from = std::max(cursor, base_);
    page.bytes.resize(std::min<std::uint64_t>(limit, size - from));
    std::size_t have = 0;
    while (have < page.bytes.size()) {
        ssize_t got = ::pread(fd, page.bytes.data() + have, page.bytes.size() - have,
                              static_cast<off_t>(from + have));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return Error::from_errno(errno, "read the command's output");
        if (got == 0) break;
        have += static_cast<std::size_t>(got);
    }
    page.bytes.resize(have);
    if (growing || from + have < size) {
        page.bytes.resize(have - incomplete_utf8_tail(page.bytes));
    }
    page.next = from + page.bytes.size();
    return page;
}

bool OutputFile::trim(std::uint64_t limit) {
    UniqueFd opened;
    int fd = fd_.get();
    if (fd < 0) {
        opened.reset(::open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
        fd = opened.get();
    }
    struct stat info{};
    if (fd < 0 || ::fstat(fd, &info) != 0) return false;
    auto size = static_cast<std::uint64_t>(info.st_size);
    if (size <= limit + kPunchUnit || size - limit <= base_) return true;
    std::uint64_t end = (size - limit) / kPunchUnit * kPunchUnit;
    if (end <= base_) return true;
    if (::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(end)) !=
        0) {
        return false;
    }
    base_ = end;
    return true;
}

OutputDirectory::~OutputDirectory() {
    if (!path_.empty()) ::rmdir(path_.c_str());
}

Result<std::shared_ptr<OutputFile>> OutputDirectory::create(const std::string& name) {
    for (int round = 0; round < 2; ++round) {
        if (path_.empty()) {
            std::string made = parent_ + "/opensandbox-execd-XXXXXX";
            if (::mkdtemp(made.data()) == nullptr) {
                if (round == 0 && errno == ENOENT && ::mkdir(parent_.c_str(), 0777) == 0) {
                    ::chmod(parent_.c_str(), 01777);
                    continue;
                }
                break;
            }
            path_ = std::move(made);
        }
        std::string path = path_ + "/" + name + ".output";
        UniqueFd file(::open(path.c_str(), kFlags, 0600));
        if (file) return std::make_shared<OutputFile>(std::move(file), std::move(path));
        if (errno != ENOENT) break;
        path_.clear();
    }
    UniqueFd memory(::memfd_create("command-output", MFD_CLOEXEC));
    if (!memory) return Error::from_errno(errno, "make a file for the command's output");
    ::fcntl(memory.get(), F_SETFL, O_APPEND);
    return std::make_shared<OutputFile>(std::move(memory), std::string());
}

}  // namespace opensandbox::agent
