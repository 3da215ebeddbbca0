#pragma once

#include "http/exchange.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::http {

/// Finds the handler for a method and a raw path. A pattern is made of literal segments, `{name}`
/// for one segment that is not empty and `{name...}` at the end for the rest of the path (raw, may
/// be empty, and the slash before it may be missing). The closest pattern wins, segment by segment
/// from the left: a literal before `{name}` before `{name...}`; then one for the method before one
/// for any; then the one added first.
class Router {
  public:
    void add(std::string_view method, std::string_view pattern, Handler handler);
    /// Any method.
    void any(std::string_view pattern, Handler handler);

    /// What lookup found: `handler` is null when nothing matched; `allowed` then lists the methods
    /// of the patterns that matched the path (405), or is empty (404).
    struct Match {
        const Handler* handler = nullptr;
        std::string pattern;
        std::vector<std::pair<std::string, std::string>> parameters;
        std::vector<std::string> allowed;
    };
    [[nodiscard]] Match lookup(std::string_view method, std::string_view raw_path) const;

  private:
    struct Route {
        std::string method;  ///< empty: any
        std::string pattern;
        std::vector<std::string> segments;
        Handler handler;
    };
    std::vector<Route> routes_;
};

}  // namespace opensandbox::http
