// Threads: one thread of the command calls the functions of the header. write_part() and baseline_read()
// start threads and join them. The writing threads share only the tier's back end and the atomic `next_file`.
// Lock: the probe's folder has a lock file (TemporaryFolder), so that no other probe removes it.
// Memory: each writing thread has a buffer of 1 MiB. Names and errors allocate.
// Ctrl-C: checked between written pieces of 1 MiB and after each measurement. The probe's folder is removed,
// as after an error.
// Crash: the folder remains on the fast tier. sweep_dead_folders() of the next probe removes it, but not on a
// network file system.
#include "miniapps/staging/probe_speed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "datagen/yardsticks/baseline.hpp"
#include "datagen/yardsticks/read_plan.hpp"
#include "io_backends/backend/buffer.hpp"
#include "io_backends/core/cli/shell_quoting.hpp"
#include "io_backends/core/random.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/system/threads.hpp"
#include "io_backends/core/units.hpp"
#include "io_backends/files/page_cache.hpp"
#include "io_backends/tiers/temporary_folder.hpp"

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMostParts = 6;                // a part is a group of files of nearly one size
constexpr size_t kMostFilesOfPart = 256;        // the most files of a part that are read on the slow tier
constexpr uint64_t kWrittenBytes = 16U << 20U;  // bytes written for each size, at least kFewestFiles files
constexpr uint64_t kFewestFiles = 2;
constexpr uint64_t kMostWrittenFiles = 64;
constexpr int kMostRepeats = 64;
// The most bytes of one read: longer reads add no information.
constexpr double kLongestReadBytes = 64U << 20U;

// The sizes that `penstock tiers --probe` reads.
constexpr double kRandomReadBytes = 4U << 10U;
constexpr double kSmallFileBytes = 112U << 10U;
constexpr double kLargeFileBytes = 16U << 20U;

static_assert(kMostParts <= kMostSizes);

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double mean_bytes(const SampleList& files) {
  return double(files.bytes()) / double(files.size());
}

// Returns the positions 0 to count - 1 in an order that jumps by about 0.618 * count. The files at these
// positions are sorted by size. So for any n, the first n files in this order have about the mean size of all
// files.
std::vector<size_t> spread_order(size_t count) {
  size_t step = std::max<size_t>(size_t(double(count) * 0.618), 1);
  while (std::gcd(step, count) != 1) ++step;
  std::vector<size_t> order(count);
  for (size_t i = 0; i < count; ++i) order[i] = i * step % count;
  return order;
}

// The bytes of one read by the program: the whole file or, if it seeks in the file, one request.
uint64_t length_of(const FileThatWasRead& file) {
  return uint64_t(std::clamp(std::min(double(file.bytes), file.request_bytes), 1.0, kLongestReadBytes));
}

// Splits the files by size, so that each part has files of nearly one size.
std::vector<SampleList> parts_of(const SessionWork& work) {
  std::vector<const FileThatWasRead*> by_size;
  for (const FileThatWasRead& file : work.files)
    if (file.bytes != 0) by_size.push_back(&file);
  std::sort(by_size.begin(), by_size.end(),
            [](const FileThatWasRead* a, const FileThatWasRead* b) { return length_of(*a) < length_of(*b); });
  std::vector<SampleList> parts;
  size_t begin = 0;
  for (size_t n = 1; n <= kMostParts; ++n) {
    const size_t end = by_size.size() * n / kMostParts;
    if (end == begin) continue;
    const size_t count = std::min(end - begin, kMostFilesOfPart);
    SampleList part;
    for (const size_t i : spread_order(count)) {
      const FileThatWasRead& file = *by_size[begin + i * (end - begin) / count];
      part.add(file.name, length_of(file));
    }
    begin = end;
    // Leaves out a part whose files have nearly the same size as those of the previous part: to fit a line,
    // the sizes must differ.
    if (parts.empty() || mean_bytes(part) > mean_bytes(parts.back()) * 1.05) parts.push_back(std::move(part));
  }
  return parts;
}

class TierProbe {
 public:
  TierProbe(Tier& tier, const SpeedProbe& probe) : tier_(tier), probe_(probe) {}

  // Measures each part once with each number of threads, and adds the times to the table.
  Result<void> read_round(const std::vector<SampleList>& parts, SpeedTable& table) {
    if (table.threads.empty()) {
      table.threads = probe_.threads;
      for (const SampleList& part : parts) table.sizes.push_back(mean_bytes(part));
      table.read_s.assign(probe_.threads.size(), std::vector<std::vector<double>>(parts.size()));
    }
    for (size_t t = 0; t < probe_.threads.size(); ++t) {
      std::vector<MeasuredSize> measurements;
      for (const SampleList& part : parts) {
        note_progress(part, probe_.threads[t]);
        PENSTOCK_ASSIGN(measurements.emplace_back(), read_part(part, probe_.threads[t]));
      }
      const std::vector<double> times = times_at(table.sizes, measurements);
      for (size_t k = 0; k < parts.size(); ++k) table.read_s[t][k].push_back(times[k]);
    }
    return success();
  }

 private:
  void note_progress(const SampleList& part, unsigned threads) const {
    if (probe_.note)
      probe_.note(fmt::format("{}: files of {}, {} thread{}", tier_.name,
                              format_size(uint64_t(mean_bytes(part))), threads, threads == 1 ? "" : "s"));
  }

  bool evicts() const { return probe_.cold && !tier_.facts.memory && !tier_.backend->caps().bypasses_cache; }

  // The first file that stays in the page cache is named, because its time is then not that of the tier.
  void evict_files(const SampleList& files) {
    for (uint64_t i = 0; i < files.size(); ++i) {
      const auto path = tier_.backend->native_path(files.name(files[i].object));
      if (!path) continue;
      const auto evicted = evict(*path);
      if (evicted.ok() || std::exchange(warned_, true) || !probe_.warn) continue;
      probe_.warn(
          fmt::format("cannot drop '{}' from the page cache ({}): tier '{}' may be slower than measured",
                      path->native(), evicted.error().message(), tier_.name));
    }
  }

  Result<MeasuredSize> read_part(const SampleList& part, unsigned threads) {
    const ReadPlan plan{.samples = part, .backend = *tier_.backend, .whole_objects = true, .order = {}};
    double seconds = 0;
    LoopDone total;
    if (!evicts()) {
      // A tier with a rate limit may serve a first burst of reads faster. One read for each thread before the
      // clock starts uses up that burst.
      PENSTOCK_TRY(baseline_read(plan, threads, {.first_read = next_file_, .samples = threads}));
      next_file_ += threads;
      const Clock::time_point start = Clock::now();
      PENSTOCK_ASSIGN(
          const LoopDone done,
          baseline_read(plan, threads, {.first_read = next_file_, .deadline = start + probe_.min_time}));
      seconds = seconds_since(start);
      next_file_ += done.samples;
      total = done;
    }
    for (int repeat = 0; evicts() && repeat < kMostRepeats &&
                         seconds < std::chrono::duration<double>(probe_.min_time).count();
         ++repeat) {
      evict_files(part);
      const Clock::time_point start = Clock::now();
      PENSTOCK_ASSIGN(const LoopDone done, baseline_read(plan, threads,
                                                         {.first_read = next_file_,
                                                          .samples = part.size(),
                                                          .deadline = start + probe_.min_time}));
      seconds += seconds_since(start);
      total.samples += done.samples;
      total.bytes += done.bytes;
      next_file_ += done.samples;
    }
    PENSTOCK_TRY(check_interrupt());
    const auto files = double(std::max<uint64_t>(total.samples, 1));
    return MeasuredSize{.bytes = double(total.bytes) / files, .seconds = seconds / files};
  }

  Tier& tier_;
  const SpeedProbe& probe_;
  uint64_t next_file_ = 0;
  bool warned_ = false;  // about a file that cannot be evicted
};

// Fills the buffer with bytes that no device or file system can compress.
void fill_with_noise(Buffer& buffer, uint64_t seed) {
  const RandomStream random(seed, "staging probe");
  for (size_t at = 0; at + sizeof(uint64_t) <= buffer.capacity(); at += sizeof(uint64_t)) {
    const uint64_t bits = random.bits(at);
    std::memcpy(buffer.data() + at, &bits, sizeof bits);
  }
}

Result<void> write_file(Tier& tier, std::string_view name, uint64_t bytes, Buffer& buffer) {
  PENSTOCK_ASSIGN(const auto writer, tier.backend->create(name, bytes));
  for (uint64_t done = 0; done < bytes;) {
    PENSTOCK_TRY(check_interrupt());
    const auto piece = buffer.first(size_t(std::min<uint64_t>(bytes - done, buffer.capacity())));
    PENSTOCK_TRY(writer->append(piece));
    done += piece.size();
  }
  return writer->publish(Durability::file_and_name);
}

// Writes files of the mean size of the part `like` to the fast tier, in the same way as `stage apply` writes
// copies. Adds the seconds per file to write_s.
Result<SampleList> write_part(Tier& tier, const TemporaryFolder& folder, const SampleList& like,
                              size_t number, const SpeedProbe& probe, std::vector<double>& write_s) {
  SampleList part;
  const auto bytes = uint64_t(std::round(mean_bytes(like)));
  const uint64_t most_files =
      std::clamp(kWrittenBytes / std::max<uint64_t>(bytes, 1), kFewestFiles, kMostWrittenFiles);
  const auto name = [&](uint64_t i) { return folder.object(fmt::format("size-{}", number), i); };
  std::atomic<uint64_t> next_file{0};
  const unsigned threads = unsigned(std::min<uint64_t>(probe.copy_threads, most_files));
  const Clock::time_point start = Clock::now();
  const auto write = [&](unsigned thread) -> Result<void> {
    Buffer buffer(size_t{1} << 20U);
    fill_with_noise(buffer, probe.seed + thread);
    while (true) {
      const uint64_t i = next_file.load();
      if (i >= most_files || (i >= kFewestFiles && Clock::now() - start > probe.min_time)) return success();
      if (const uint64_t index = next_file.fetch_add(1); index < most_files)
        PENSTOCK_TRY(write_file(tier, name(index), bytes, buffer));
    }
  };
  PENSTOCK_TRY(on_threads(threads, write, IfFewer::fail));
  const uint64_t count = std::min(next_file.load(), most_files);
  write_s.push_back(seconds_since(start) / double(count));
  for (uint64_t i = 0; i < count; ++i) part.add(name(i), bytes);
  return part;
}

Result<void> check_room(Tier& fast, const std::vector<SampleList>& parts) {
  uint64_t needed_bytes = 0;
  for (const SampleList& part : parts)
    needed_bytes += std::max<uint64_t>(kWrittenBytes, kFewestFiles * uint64_t(mean_bytes(part)));
  const auto free = fast.backend->names().free_bytes();
  if (!free.ok() || *free >= needed_bytes) return success();
  return make_error(Errc::no_space,
                    "measuring tier '{}' needs {} of free space, and {} are free: free some space, or pass "
                    "records of `penstock tiers --probe` with --speeds",
                    fast.name, format_size(needed_bytes), format_size(*free));
}

const Metric* metric_of(const Record& record, const char* name) {
  const auto found = record.metrics.find(name);
  return found == record.metrics.end() || found->second.samples.empty() ? nullptr : &found->second;
}

bool is_about(const Record& record, const Tier& tier) {
  if (record.command != "tiers" || !record.tiers.contains("data")) return false;
  const Json& data = record.tiers["data"];
  return data.is_object() && data.value("spec", "") == tier.spec;
}

std::optional<unsigned> clients_of(const Record& record) {
  const auto threads = record.parameters.find("threads");
  if (threads == record.parameters.end() || !threads->is_number_unsigned()) return std::nullopt;
  return threads->get<unsigned>();
}

// Adds a record of `penstock tiers --probe` as a row of the table. The row is for the number of threads
// (clients) with which the record was measured. False if the record lacks a value that the row needs.
bool add_record(const Record& record, SpeedTable& table) {
  const std::optional<unsigned> clients = clients_of(record);
  const Metric* const small = metric_of(record, "read.small_files.112k.1.ops_per_s");
  const Metric* const large = metric_of(record, "read.sequential.1m.1.bytes_per_s");
  if (!clients || *clients == 0 || small == nullptr || large == nullptr) return false;
  // Corrects the time of a small file, which is too short in records of older versions: their rate is the
  // best of several loops, some with read-ahead or more threads than clients. A program that reads one file
  // after the other waits for each file at least as long as for a random block. So this time is raised to at
  // least the time of a random block and of the remaining bytes.
  const Metric* const random_read = metric_of(record, "read.random.4k.1.ops_per_s");
  std::vector<std::vector<double>> row(2);
  for (size_t i = 0; i < std::min(small->samples.size(), large->samples.size()); ++i) {
    if (!(small->samples[i] > 0) || !(large->samples[i] > 0)) continue;
    double small_s = 1 / small->samples[i];
    if (random_read != nullptr && random_read->value() > 0)
      small_s = std::max(small_s,
                         1 / random_read->value() + (kSmallFileBytes - kRandomReadBytes) / large->samples[i]);
    row[0].push_back(small_s);
    row[1].push_back(row[0].back() + (kLargeFileBytes - kSmallFileBytes) / large->samples[i]);
  }
  if (row[0].empty()) return false;
  table.threads.push_back(*clients);
  table.read_s.push_back(std::move(row));
  const Metric* const write = metric_of(record, "write.sequential.1m.1.bytes_per_s");
  const Metric* const create = metric_of(record, "metadata.create.ops_per_s");
  if (write == nullptr || create == nullptr || !(write->value() > 0) || !(create->value() > 0)) return true;
  table.write_s = {1 / create->value() + kSmallFileBytes / write->value(),
                   1 / create->value() + kLargeFileBytes / write->value()};
  return true;
}

Result<SpeedTable> recorded_table(const Tier& tier, std::span<const Record> records) {
  std::vector<const Record*> tier_records;
  for (const Record& record : records)
    if (is_about(record, tier) && clients_of(record)) tier_records.push_back(&record);
  // Of several records with the same number of clients, only the last is used.
  std::stable_sort(tier_records.begin(), tier_records.end(),
                   [](const Record* a, const Record* b) { return *clients_of(*a) < *clients_of(*b); });
  SpeedTable table;
  table.sizes = {kSmallFileBytes, kLargeFileBytes};
  for (size_t i = 0; i < tier_records.size(); ++i)
    if (i + 1 == tier_records.size() || *clients_of(*tier_records[i]) != *clients_of(*tier_records[i + 1]))
      add_record(*tier_records[i], table);
  if (!table.threads.empty()) return table;
  return make_error(
      Errc::not_found,
      "these records contain no `tiers` record of tier '{}': make one with penstock tiers --probe --tier {}",
      tier.name, shell_word(tier.spec));
}

}  // namespace

std::vector<unsigned> probe_threads(unsigned most) {
  std::vector<unsigned> all{1};
  const auto middle = unsigned(std::lround(std::sqrt(double(most))));
  for (const unsigned next : {middle, most})
    if (next > all.back()) all.push_back(next);
  return all;
}

Result<TierSpeeds> probe_speeds(Tier& slow, Tier& fast, const SessionWork& work, const SpeedProbe& probe) {
  const std::vector<SampleList> parts = parts_of(work);
  if (parts.empty())
    return make_error(Errc::not_found,
                      "all files that the session read are empty, so there is nothing to stage");
  PENSTOCK_TRY(check_room(fast, parts));
  TierSpeeds speeds;
  sweep_dead_folders(fast, kProbeFolderPrefix, probe.log, probe.warn);
  TemporaryFolder folder(fast, kProbeFolderPrefix, probe.warn);
  folder.occupy();
  std::vector<SampleList> written_parts;
  for (const SampleList& part : parts) {
    PENSTOCK_ASSIGN(SampleList files,
                    write_part(fast, folder, part, written_parts.size(), probe, speeds.fast.write_s));
    written_parts.push_back(std::move(files));
  }
  // The two tiers are measured alternately, and each round measures all sizes and numbers of threads. So a
  // slow minute affects all of them alike.
  TierProbe of_slow(slow, probe);
  TierProbe of_fast(fast, probe);
  for (size_t repeat = 0; repeat < probe.repeats; ++repeat) {
    PENSTOCK_TRY(of_slow.read_round(parts, speeds.slow));
    PENSTOCK_TRY(of_fast.read_round(written_parts, speeds.fast));
  }
  return speeds;
}

Result<TierSpeeds> recorded_speeds(const Tier& slow, const Tier& fast, std::span<const Record> records) {
  TierSpeeds speeds;
  PENSTOCK_ASSIGN(speeds.slow, recorded_table(slow, records));
  PENSTOCK_ASSIGN(speeds.fast, recorded_table(fast, records));
  return speeds;
}

}  // namespace penstock
