// The time plan of a command: the parts of its work and how long they are expected to take. It is printed
// before a long command starts, and --time-limit leaves parts out of it.
//
// The code that does the work adds the parts, and asks begin() before each of them. So the plan and the work
// cannot differ.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/json.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/core/time_range.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {

// The option of every command that has a time plan.
inline constexpr OptionSpec kTimeLimitOption{
    .name = "time-limit",
    .role = OptionRole::repeat,
    .type = OptionType::duration,
    .value = "TIME",
    .help =
        "end the whole command within this time: leave out what is not expected to fit, the ceiling first",
    .group = "Duration"};

// A kind of work that a command does several times.
struct PlanPart {
  std::string name;      // "repeats"
  uint64_t asked = 0;    // how many the user asked for
  TimeRange each{};      // the expected time of one, on average
  uint64_t least = 0;    // how many must be done; the others may be left out
  uint64_t group = 1;    // how many are left out together, such as one repeat of every cell
  uint64_t planned = 0;  // how many fit into the time limit; TimePlan::settle() sets it
  uint64_t started = 0;
  double took_s = 0;  // time of those that have ended
  uint64_t ended = 0;
};

// Only one thread may use it. All ranks of a job make the same calls.
class TimePlan {
 public:
  // Returns on every rank the number that rank 0 passes. Empty: there is one rank.
  using FromRoot = std::function<double(double)>;

  explicit TimePlan(const CommandContext& context, FromRoot from_root = {});

  // Adds a part. Parts that are added later are left out first. If there is a part of this name already, the
  // two become one. The ranks follow rank 0's times.
  void add(PlanPart part);

  // Counts bytes that were read from the tiers to estimate times.
  void count_read(uint64_t bytes) { read_bytes_ += bytes; }

  // Ends the planning: leaves out what does not fit into --time-limit, and prints the plan if it needs more
  // than ten seconds. invalid_argument if even the least does not fit; `remedy` then says how to ask for
  // less, such as "fewer --threads".
  Result<void> settle(std::string_view remedy);

  // Starts the next one of a part, which ends the part that was started before. Returns false if it is left
  // out: it was not planned, or it is not expected to end within the limit any more. Then another part that
  // was started before goes on. `step` names it for the
  // log: "disk, 4 threads: repeat 2 of 3".
  bool begin(std::string_view part, std::string_view step);
  void end();  // ends the part that was started last
  // Ends the part that was started last, and adds the time from now on to an earlier one.
  void resume(std::string_view part);

  bool is_limited() const { return limit_s_.has_value(); }
  bool logs_steps() const { return is_long_ && logs_steps_; }  // whether begin() logs
  // How many of a part were asked for and not done, because of the limit.
  uint64_t left_out(std::string_view part) const;
  std::string limit_text() const;                   // "--time-limit 30s"
  TimeRange planned_time() const;                   // of all planned parts
  TimeRange expected() const { return expected_; }  // of the whole command, from the start of the process
  Json json() const;                                // for the record; null before settle()

 private:
  PlanPart* find(std::string_view name);
  double agreed(double value) const { return from_root_ ? from_root_(value) : value; }
  double expected_s(const PlanPart& part) const;
  bool fits_now(const PlanPart& part) const;
  void leave_out_until_it_fits(double now_s);
  void print() const;

  const std::function<void(std::string_view)> log_;
  const std::function<void(std::string_view)> warn_;
  const bool shown_;
  const bool logs_steps_;
  const FromRoot from_root_;
  std::optional<double> limit_s_;
  std::string limit_text_;
  std::vector<PlanPart> parts_;
  TimeRange expected_;
  uint64_t read_bytes_ = 0;
  bool is_settled_ = false;
  bool is_long_ = false;
  PlanPart* current_ = nullptr;  // points into parts_, which does not change after settle()
  std::chrono::steady_clock::time_point current_start_;
};

// Both ends in one unit, with at least two significant digits: "1.5 to 2.0 s", "85 to 110 s", "12 to 15 min".
std::string to_text(const TimeRange& range);

// Whether a plan may read or write a little on this tier before the measurement. Not if the tier makes faults
// (its option `fail`), because they depend on the number of calls.
bool may_try_speed(const Tier& tier);

// Seconds since the start of this process.
double process_seconds();

}  // namespace penstock
