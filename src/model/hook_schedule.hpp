#pragma once

#include "base/clock.hpp"
#include "base/error.hpp"

#include <bitset>
#include <chrono>
#include <string_view>

namespace opensandbox::model {

/// When a periodic hook runs. Either five fields as cron has them (minute, hour, day of the month,
/// month, day of the week; lists, ranges, steps, English names; days match when either day field
/// does, unless one of them begins with '*'), or @yearly, @monthly, @weekly, @daily, @hourly, or
/// "@every <duration>" such as "@every 1h30m" (1 s to a year). Times are UTC. Pure.
class Schedule {
  public:
    /// invalid_argument says which part breaks which rule; also for what never comes, such as the
    /// 30th of February.
    static Result<Schedule> parse(std::string_view text);

    /// The first moment after `time`.
    [[nodiscard]] Timestamp next_after(Timestamp time) const;

  private:
    Schedule() = default;
    static Result<Schedule> parse_fields(std::string_view text);
    [[nodiscard]] bool on_day(std::chrono::sys_days day) const;

    std::chrono::seconds every_{0};  ///< 0: by the fields
    std::bitset<60> minutes_;
    std::bitset<24> hours_;
    std::bitset<32> days_;
    std::bitset<13> months_;
    std::bitset<7> weekdays_;
    bool any_day_ = false;  ///< the day of the month begins with '*'
    bool any_weekday_ = false;
};

}  // namespace opensandbox::model
