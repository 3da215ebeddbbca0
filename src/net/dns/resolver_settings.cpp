#include "net/dns/resolver_settings.hpp"

#include <algorithm>
#include <sstream>

namespace opensandbox::net::dns {

namespace {

constexpr std::size_t kMaxText = 64 << 10;
constexpr std::size_t kMaxWords = 32;

std::string domain_of(std::string word) {
    while (word.starts_with('.'))
        word.erase(0, 1);
    while (word.ends_with('.'))
        word.pop_back();
    std::ranges::transform(word, word.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return word;
}

}  // namespace

ResolverSettings parse_resolver_settings(std::string_view text, std::size_t max_servers) {
    ResolverSettings settings;
    std::istringstream lines{std::string(text.substr(0, kMaxText))};
    for (std::string line; std::getline(lines, line);) {
        line = line.substr(0, line.find_first_of("#;"));
        std::istringstream words(line);
        std::string key;
        words >> key;
        std::vector<std::string> values;
        for (std::string word; words >> word && values.size() < kMaxWords;)
            values.push_back(std::move(word));
        if (key == "nameserver" && !values.empty()) {
            boost::system::error_code wrong;
            auto address = boost::asio::ip::make_address(values.front(), wrong);
            if (!wrong && settings.servers.size() < max_servers) {
                settings.servers.push_back(address);
            }
        } else if (key == "search" || key == "domain") {
            settings.search.clear();
            for (std::string& word : values) {
                std::string domain = domain_of(std::move(word));
                if (!domain.empty()) settings.search.push_back(std::move(domain));
            }
        } else if (key == "options") {
            settings.options.insert(settings.options.end(), values.begin(), values.end());
        }
    }
    return settings;
}

}  // namespace opensandbox::net::dns
