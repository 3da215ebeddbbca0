#pragma once

#include "base/error.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// What the parts of this program have in common: each is one measure, told as one line of JSON.
namespace opensandbox::bench {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point begun) {
    return std::chrono::duration<double>(Clock::now() - begun).count();
}

/// The value, or the end of the measure.
template <class T>
T must(Result<T> result) {
    if (!result) throw std::runtime_error(result.error().message());
    if constexpr (!std::is_void_v<T>) return std::move(*result);
}

/// Seconds that each of many things took.
class Times {
  public:
    void add(double seconds) { all_.push_back(seconds); }
    void add(const Times& others) {
        all_.insert(all_.end(), others.all_.begin(), others.all_.end());
    }
    template <class Action>
    void measure(const Action& action) {
        const auto begun = Clock::now();
        action();
        add(seconds_since(begun));
    }
    [[nodiscard]] std::size_t size() const { return all_.size(); }
    [[nodiscard]] double mean() const {
        double sum = 0;
        for (const double seconds : all_)
            sum += seconds;
        return all_.empty() ? 0 : sum / static_cast<double>(all_.size());
    }
    /// `part` from 0 to 1.
    [[nodiscard]] double percentile(double part) {
        if (all_.empty()) return 0;
        const auto last = all_.size() - 1;
        const auto at = std::min(last, static_cast<std::size_t>(part * double(all_.size())));
        std::ranges::nth_element(all_, all_.begin() + static_cast<std::ptrdiff_t>(at));
        return all_[at];
    }
    [[nodiscard]] double median() { return percentile(0.5); }

  private:
    std::vector<double> all_;
};

/// Numbers by name, for who reads them.
class Figures {
  public:
    void add(const std::string& name, double value) {
        text_ << (text_.tellp() == 0 ? "{\"" : ",\"") << name << "\":" << value;
    }
    /// Mean, median and 99 % of them, each as seconds.
    void add(const std::string& name, Times& times) {
        add(name + "_mean", times.mean());
        add(name + "_median", times.median());
        add(name + "_p99", times.percentile(0.99));
    }
    void tell() const { std::cout << text_.str() << '}' << std::endl; }

  private:
    std::ostringstream text_;
};

}  // namespace opensandbox::bench
