#include "imagebuild/selection.hpp"

#include "imagebuild/path_pattern.hpp"

#include <set>

namespace opensandbox::imagebuild {
namespace {

constexpr int kMostLinks = 40;

std::string_view base_name(std::string_view path) {
    const auto slash = path.rfind('/');
    return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

/// The first entry below a directory and those after it, as the map has them in order.
template <class Use>
void for_each_below(const ContextEntries& entries, const std::string& directory, Use use) {
    const std::string prefix = directory.empty() ? std::string() : directory + "/";
    for (auto at = entries.upper_bound(prefix); at != entries.end(); ++at) {
        if (!at->first.starts_with(prefix)) break;
        use(at->first, std::string_view(at->first).substr(prefix.size()));
    }
}

class Selector {
  public:
    explicit Selector(const ContextEntries& entries) : entries_(entries) {}

    Status add(const std::string& source) {
        auto cleaned = clean_path(source);
        if (!cleaned) return failed(source, "leads out of the context");
        if (!has_wildcard(*cleaned)) return add_one(source, *cleaned);
        auto pattern = PathPattern::parse(*cleaned, PathPattern::Deep::no);
        if (!pattern) return failed(source, pattern.error().message());
        bool found = false;
        for (const auto& [path, entry] : entries_) {
            if (path.empty() || !pattern->matches(path)) continue;
            found = true;
            if (Status added = add_one(source, path); !added) return added;
        }
        return found ? Status() : failed(source, "nothing in the context matches");
    }

    Selection finish() {
        out_.single_file = files_ == 1 && directories_ == 0;
        out_.several = files_ + directories_ > 1;
        return std::move(out_);
    }

  private:
    static Error failed(const std::string& source, std::string_view why) {
        return {ErrorCode::not_found, "'" + source + "': " + std::string(why)};
    }

    Status add_one(const std::string& source, const std::string& named) {
        auto path = follow(entries_, named);
        if (!path) return failed(source, path.error().message());
        const ContextEntry& entry = entries_.find(*path)->second;
        if (entry.kind != EntryKind::directory) {
            ++files_;
            put(*path, std::string(base_name(named)), true);
            return {};
        }
        ++directories_;
        put(*path, ".", true);
        for_each_below(entries_, *path, [&](const std::string& below, std::string_view name) {
            put(below, std::string(name), false);
        });
        return {};
    }

    void put(std::string source, std::string name, bool named) {
        out_.members.emplace_back(std::move(source), std::move(name), named);
    }

    const ContextEntries& entries_;
    Selection out_;
    std::size_t files_ = 0;
    std::size_t directories_ = 0;
};

}  // namespace

Result<std::string> follow(const ContextEntries& entries, std::string_view path) {
    std::string rest(path);
    std::string done;
    for (int links = 0;;) {
        if (rest.empty()) break;
        const auto slash = rest.find('/');
        const std::string part = rest.substr(0, slash);
        rest = slash == std::string::npos ? std::string() : rest.substr(slash + 1);
        std::string at = done.empty() ? part : done + "/" + part;
        auto found = entries.find(at);
        if (found == entries.end()) {
            return Error(ErrorCode::not_found, "is not in the context (or ignored there)");
        }
        if (found->second.kind != EntryKind::link) {
            if (!rest.empty() && found->second.kind != EntryKind::directory) {
                return Error(ErrorCode::not_found, "'" + at + "' is not a directory");
            }
            done = std::move(at);
            continue;
        }
        if (++links > kMostLinks) return Error(ErrorCode::not_found, "too many symbolic links");
        const std::string& target = found->second.target;
        const std::string from =
            target.starts_with('/') || done.empty() ? target : done + "/" + target;
        auto cleaned = clean_path(from);
        if (!cleaned) {
            return Error(ErrorCode::not_found, "the link '" + at + "' leads out of the context");
        }
        rest = rest.empty() ? *cleaned : *cleaned + "/" + rest;
        done.clear();
    }
    return done;
}

Result<Selection> select(const ContextEntries& entries, const std::vector<std::string>& sources) {
    Selector selector(entries);
    for (const std::string& source : sources) {
        if (Status added = selector.add(source); !added) return added.error();
    }
    return selector.finish();
}

}  // namespace opensandbox::imagebuild
