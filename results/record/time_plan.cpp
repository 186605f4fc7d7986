#include "results/record/time_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kLongCommand_s = 10;  // a plan is printed for commands that may take longer
// The time limit of the error message is longer than the plan by this factor: the next plan is made of new
// measurements, and may be a little longer.
constexpr double kLimitReserve = 1.15;

// To write the records and to end the process.
constexpr TimeRange kEnd{0.02, 0.3};

// The clock starts when the program is loaded.
const Clock::time_point process_start = Clock::now();

std::string number_text(double value) {
  return value < 9.95 ? fmt::format("{:.1f}", value) : fmt::format("{:.0f}", value);
}

}  // namespace

std::string to_text(const TimeRange& range) {
  constexpr double kMinutesFrom_s = 300;
  constexpr double kHoursFrom_s = 3 * 3600;
  double unit_s = 1;
  std::string_view unit = "s";
  if (range.high_s >= kMinutesFrom_s) {
    unit_s = range.high_s >= kHoursFrom_s ? 3600 : 60;
    unit = range.high_s >= kHoursFrom_s ? "h" : "min";
  }
  const std::string low = number_text(range.low_s / unit_s);
  const std::string high = number_text(range.high_s / unit_s);
  return low == high ? fmt::format("{} {}", high, unit) : fmt::format("{} to {} {}", low, high, unit);
}

bool may_try_speed(const Tier& tier) {
  const auto spec = parse_tier(tier.spec, kNoNamedTiers);
  return !spec.ok() || std::none_of(spec->options.begin(), spec->options.end(),
                                    [](const OptionWord& option) { return option.key == "fail"; });
}

double process_seconds() {
  return std::chrono::duration<double>(Clock::now() - process_start).count();
}

TimePlan::TimePlan(const CommandContext& context, FromRoot from_root)
    : log_(context.log),
      warn_(context.warn),
      shown_(context.output.progress || context.output.logs_steps),
      logs_steps_(context.output.logs_steps),
      from_root_(std::move(from_root)) {
  context.options.visit([&](const OptionSpec& option, const std::string* text) {
    if (option.name != kTimeLimitOption.name || text == nullptr) return;
    limit_s_ = std::chrono::duration<double>(context.options.duration(option.name)).count();
    limit_text_ = fmt::format("--{} {:g}s", option.name, *limit_s_);
  });
}

void TimePlan::add(PlanPart part) {
  assert(!is_settled_ && part.least <= part.asked);
  part.each = {agreed(part.each.low_s), agreed(part.each.high_s)};
  if (part.asked == 0) return;
  part.planned = part.asked;
  PlanPart* const known = find(part.name);
  if (known == nullptr) {
    parts_.push_back(std::move(part));
    return;
  }
  const double total = double(known->asked + part.asked);
  known->each = double(known->asked) / total * known->each + double(part.asked) / total * part.each;
  known->asked += part.asked;
  known->planned += part.asked;
  known->least += part.least;
  known->group += part.group;
}

PlanPart* TimePlan::find(std::string_view name) {
  const auto found =
      std::find_if(parts_.begin(), parts_.end(), [&](const PlanPart& part) { return part.name == name; });
  return found == parts_.end() ? nullptr : &*found;
}

TimeRange TimePlan::planned_time() const {
  TimeRange sum;
  for (const PlanPart& part : parts_) sum += double(part.planned) * part.each;
  return sum;
}

void TimePlan::leave_out_until_it_fits(double now_s) {
  for (auto part = parts_.rbegin(); part != parts_.rend(); ++part)
    while (now_s + planned_time().high_s + kEnd.high_s > *limit_s_ && part->planned > part->least)
      part->planned -= std::min(part->group, part->planned - part->least);
}

Result<void> TimePlan::settle(std::string_view remedy) {
  is_settled_ = true;
  const double now_s = agreed(process_seconds());
  if (limit_s_) leave_out_until_it_fits(now_s);
  expected_ = TimeRange{now_s, now_s} + planned_time() + kEnd;
  is_long_ = expected_.high_s > kLongCommand_s;
  if (limit_s_ && expected_.high_s > *limit_s_) {
    std::string list;
    for (const PlanPart& part : parts_)
      if (part.planned > 0)
        list += fmt::format("{}{} {}", list.empty() ? "" : ", ", part.name,
                            to_text(double(part.planned) * part.each));
    return make_error(Errc::invalid_argument,
                      "{} is too short: the least that can be measured takes {} ({}): give --time-limit "
                      "{:.0f}s, or {}",
                      limit_text_, to_text(expected_), list, std::ceil(expected_.high_s * kLimitReserve),
                      remedy);
  }
  print();
  return success();
}

void TimePlan::print() const {
  if (is_long_ && shown_) {
    log_(fmt::format("plan: {} in all", to_text(expected_)));
    for (const PlanPart& part : parts_)
      if (part.planned > 0)
        log_(fmt::format("  {:<16} {:>6}   {}", part.name, part.planned,
                         to_text(double(part.planned) * part.each)));
  }
  for (const PlanPart& part : parts_)
    if (part.planned < part.asked)
      warn_(fmt::format("{} leaves out {} of {} {}", limit_text_, part.asked - part.planned, part.asked,
                        part.name));
}

double TimePlan::expected_s(const PlanPart& part) const {
  return part.ended > 0 ? part.took_s / double(part.ended) : part.each.high_s;
}

// Whether there is time for the next one of this part. If it may be left out, there must also be time for
// everything that must be done.
bool TimePlan::fits_now(const PlanPart& part) const {
  double needed_s = expected_s(part);
  if (part.started >= part.least)
    for (const PlanPart& other : parts_)
      needed_s += double(other.least - std::min(other.least, other.started)) * expected_s(other);
  return process_seconds() + needed_s <= *limit_s_;
}

bool TimePlan::begin(std::string_view part_name, std::string_view step) {
  PlanPart* const part = find(part_name);
  PlanPart* const before = current_;
  const bool is_refused = part == nullptr || part->started >= part->planned;
  if (is_refused && before != part) return false;
  const double took_before_s = before == nullptr ? 0 : before->took_s;
  end();
  if (is_refused) return false;
  if (limit_s_ && agreed(fits_now(*part) ? 1 : 0) == 0) {
    warn_(fmt::format("{}: no time is left for {} of {} {}", limit_text_, part->planned - part->started,
                      part->planned, part->name));
    part->planned = part->started;
    if (before == nullptr || before == part) return false;
    current_ = before;  // it goes on
    --before->ended;
    before->took_s = took_before_s;
    return false;
  }
  if (logs_steps()) {
    double left_s = 0;
    for (const PlanPart& other : parts_)
      left_s += double(other.planned - other.started) *
                (other.ended > 0 ? expected_s(other) : other.each.middle_s());
    log_(fmt::format("{} (about {} left)", step, to_text({left_s, left_s})));
  }
  ++part->started;
  current_ = part;
  current_start_ = Clock::now();
  return true;
}

void TimePlan::end() {
  if (current_ == nullptr) return;
  current_->took_s += std::chrono::duration<double>(Clock::now() - current_start_).count();
  ++current_->ended;
  current_ = nullptr;
}

void TimePlan::resume(std::string_view part_name) {
  end();
  PlanPart* const part = find(part_name);
  if (part == nullptr || part->ended == 0) return;
  --part->ended;  // end() counts it again
  current_ = part;
  current_start_ = Clock::now();
}

uint64_t TimePlan::left_out(std::string_view part_name) const {
  for (const PlanPart& part : parts_)
    if (part.name == part_name) return part.asked - part.planned;
  return 0;
}

std::string TimePlan::limit_text() const {
  return limit_text_;
}

Json TimePlan::json() const {
  if (!is_settled_) return Json();
  const auto range_json = [](const TimeRange& range) { return Json::array({range.low_s, range.high_s}); };
  Json json{{"expected_s", range_json(expected_)}, {"read_bytes", read_bytes_}, {"parts", Json::array()}};
  if (limit_s_) json["time_limit_s"] = *limit_s_;
  for (const PlanPart& part : parts_)
    json["parts"].push_back({{"name", part.name},
                             {"asked", part.asked},
                             {"done", part.started},
                             {"expected_s", range_json(double(part.planned) * part.each)},
                             {"took_s", part.took_s}});
  return json;
}

}  // namespace penstock
