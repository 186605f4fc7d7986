#include "profiling/spans/timeline_file.hpp"

#include <fmt/format.h>

#include <cctype>
#include <cerrno>
#include <iterator>

#include "io_backends/core/csv_field.hpp"
#include "io_backends/core/json.hpp"
#include "profiling/spans/span_log.hpp"

namespace penstock {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;

// Formats nanoseconds, as seconds with 9 decimals ("12.000000345") or as microseconds with 3 decimals
// ("-0.001").
std::string decimal(int64_t value, int places) {
  const int64_t unit_ns = places == 9 ? kSecondNs : 1000;
  const int64_t magnitude = value < 0 ? -value : value;
  return fmt::format("{}{}.{:0{}}", value < 0 ? "-" : "", magnitude / unit_ns, magnitude % unit_ns, places);
}

std::string_view wait_text(unsigned detail) {
  return detail == PENSTOCK_WAIT_INPUT   ? "Wait for Input"
         : detail == PENSTOCK_WAIT_RANKS ? "Wait for Ranks"
                                         : "Wait for Room";
}

bool has_sample_number(unsigned component) {
  return component == PENSTOCK_READ || component == PENSTOCK_LOAD || component == PENSTOCK_DECODE ||
         component == PENSTOCK_TRANSFORM;
}

}  // namespace

Result<TimelineFormat> timeline_format(std::string_view path) {
  if (path.ends_with(".csv")) return TimelineFormat::csv;
  if (path.ends_with(".json")) return TimelineFormat::chrome;
  return make_error(
      Errc::invalid_argument,
      "the timeline '" + std::string(path) +
          "' must end in .csv (columns of TimeLogger) or .json (a trace for Chrome and Perfetto)");
}

Result<TimelineFile> TimelineFile::create(const std::string& path, TimelineFormat format) {
  TimelineFile file;
  file.path_ = path;
  file.format_ = format;
  file.file_.reset(std::fopen(path.c_str(), "we"));
  if (!file.file_) return errno_error(errno, "cannot write the timeline", path);
  return file;
}

Result<void> TimelineFile::begin(TimelineNames names) {
  names_ = std::move(names);
  line_ = format_ == TimelineFormat::csv
              ? "Epoch,Rank,Action Name,Action Description,Start Time,End Time,Time Taken,Process ID,Current "
                "Thread\n"
              : "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  return write();
}

Result<void> TimelineFile::begin_rank(TimelineRank rank) {
  rank_ = std::move(rank);
  if (format_ == TimelineFormat::csv) return success();
  write_metadata("process_name", 0,
                 fmt::format("rank {} ({}, process {})", rank_.rank, rank_.host, rank_.process_id));
  PENSTOCK_TRY(write());
  for (const auto& [thread, name] : rank_.threads) {
    write_metadata("thread_name", thread, name);
    PENSTOCK_TRY(write());
  }
  return success();
}

Result<void> TimelineFile::add(std::span<const penstock_span> spans) {
  for (const penstock_span& span : spans) {
    if (span.component >= PENSTOCK_COMPONENTS) continue;
    if (format_ == TimelineFormat::csv)
      write_row(span);
    else
      write_event(span);
    PENSTOCK_TRY(write());
  }
  return success();
}

Result<void> TimelineFile::close() {
  if (format_ == TimelineFormat::chrome) {
    line_ = "\n]}\n";
    PENSTOCK_TRY(write());
  }
  if (std::fclose(file_.release()) != 0) return errno_error(errno, "cannot write the timeline", path_);
  return success();
}

Result<void> TimelineFile::write() {
  if (std::fwrite(line_.data(), 1, line_.size(), file_.get()) != line_.size())
    return errno_error(errno, "cannot write the timeline", path_);
  return success();
}

std::string_view TimelineFile::object_name(const penstock_span& span) {
  if (!names_.object || !has_sample_number(span.component) || span.number == PENSTOCK_NO_NUMBER) return "";
  return names_.object(span.number, scratch_);
}

std::string_view TimelineFile::stage_name(const penstock_span& span) const {
  const bool is_stage = span.component == PENSTOCK_DECODE || span.component == PENSTOCK_TRANSFORM;
  return is_stage && span.detail < names_.stage_names.size()
             ? std::string_view(names_.stage_names[span.detail])
             : component_name(span.component);
}

// The text of the column Action Name. If TimeLogger has a name for the activity, it is that name.
std::string TimelineFile::action_name(const penstock_span& span) const {
  switch (span.component) {
    case PENSTOCK_READ:
      return names_.read_action;
    case PENSTOCK_LOAD:
      return "Load File";
    case PENSTOCK_TRAIN:
      return "Training Step";
    case PENSTOCK_ITERATION:
      return "Training Iteration";
    case PENSTOCK_CHECKPOINT:
      return "Checkpoint Listener";
    case PENSTOCK_VALIDATION:
      return "Validation";
    case PENSTOCK_SHUFFLE:
      return names_.shuffle_action;
    case PENSTOCK_WAIT:
      return std::string(wait_text(span.detail));
    default: {
      std::string name(stage_name(span));
      if (!name.empty()) name[0] = char(std::toupper(static_cast<unsigned char>(name[0])));
      return name;
    }
  }
}

std::string TimelineFile::description(const penstock_span& span) {
  if (span.number == PENSTOCK_NO_NUMBER) return "";
  if (!has_sample_number(span.component)) return fmt::format("step {}", span.number);
  const std::string_view object = object_name(span);
  return object.empty() ? fmt::format("sample {}", span.number)
                        : fmt::format("sample {} of {}", span.number, object);
}

void TimelineFile::write_row(const penstock_span& span) {
  const int64_t epoch = span.epoch == PENSTOCK_NO_EPOCH ? int64_t{-1} : int64_t(span.epoch);
  line_ = fmt::format("{},{},{},{},{},{},{},{},{}\n", epoch, rank_.rank, csv_field(action_name(span)),
                      csv_field(description(span)), decimal(span.begin_ns + names_.wall_minus_span_ns, 9),
                      decimal(span.end_ns + names_.wall_minus_span_ns, 9),
                      decimal(span.end_ns - span.begin_ns, 9), rank_.process_id, span.thread);
}

void TimelineFile::write_event(const penstock_span& span) {
  const std::string_view own_stage_name = stage_name(span);
  std::string name(own_stage_name);
  if (span.component == PENSTOCK_WAIT) {
    name = wait_text(span.detail);
    for (char& c : name) c = char(std::tolower(static_cast<unsigned char>(c)));
  }
  line_ = fmt::format(R"({}{{"name":{},"cat":"{}","ph":"X","ts":{},"dur":{},"pid":{},"tid":{},"args":{{)",
                      std::exchange(is_first_event_, false) ? "" : ",\n", ascii_line(name),
                      component_name(span.component), decimal(span.begin_ns - names_.start_ns, 3),
                      decimal(span.end_ns - span.begin_ns, 3), rank_.rank, span.thread);
  std::string args;
  const auto put_arg = [&](std::string_view key, const auto& value) {
    fmt::format_to(std::back_inserter(args), R"({}"{}":{})", args.empty() ? "" : ",", key, value);
  };
  if (span.epoch != PENSTOCK_NO_EPOCH) put_arg("epoch", span.epoch);
  if (span.number != PENSTOCK_NO_NUMBER)
    put_arg(has_sample_number(span.component) ? "sample" : "step", span.number);
  if (const std::string_view object = object_name(span); !object.empty())
    put_arg("object", ascii_line(object));
  if (span.bytes != 0) put_arg("bytes", span.bytes);
  line_ += args + "}}";
}

void TimelineFile::write_metadata(std::string_view what, uint32_t thread, std::string_view name) {
  line_ = fmt::format(R"({}{{"name":"{}","ph":"M","pid":{},"tid":{},"args":{{"name":{}}}}})",
                      std::exchange(is_first_event_, false) ? "" : ",\n", what, rank_.rank, thread,
                      ascii_line(name));
}

}  // namespace penstock
