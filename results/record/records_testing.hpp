// For tests only: records like those of `read` and `train`, with only the members that cells and sentences
// use.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "io_backends/core/cli/command.hpp"
#include "results/cells/headlines.hpp"
#include "results/record/record.hpp"

namespace penstock {

// The metrics of `read` that the tests use.
inline constexpr MetricInfo kReadMetrics[] = {
    {"samples_per_s", "1/s", Better::higher, "repeat"},
    {"payload_bytes_per_s", "B/s", Better::higher, "repeat", kHeadline},
    {"errors", "1", Better::lower, "run", kHeadline},
    {"calls.*", "1", Better::neither, "repeat", kHeadline}};
inline Commands known_commands() {
  static constexpr CommandInfo kRead{.name = "read",
                                     .summary = "",
                                     .options = {},
                                     .run = nullptr,
                                     .synopsis = "",
                                     .examples = {},
                                     .metrics = kReadMetrics};
  static constexpr const CommandInfo* kAll[] = {&kRead};
  return kAll;
}

inline Record read_cell(const std::string& tier, int threads, const std::string& cache, double mib_per_s) {
  Record record;
  record.id = tier + cache + std::to_string(threads);
  record.started = "2026-11-20T09:30:00Z";
  record.command = "read";
  record.parameters = Json{{"tier", tier}, {"threads", threads}, {"cache", cache}, {"order", "shuffled"}};
  record.tiers["data"] = Json{{"name", tier}};
  record.cache = Json{{"client_data", cache}};
  record.corpus = Json{{"recipe", "imagenet"}, {"codec", "jpeg"}, {"checksum", "abc"}};
  record.environment = Json{{"host", "h"}};
  const double bytes = mib_per_s * 1048576;
  record.metrics["payload_bytes_per_s"] = {"B/s", Better::higher, "repeat", {bytes, bytes, bytes}};
  record.metrics["samples_per_s"] = {"1/s", Better::higher, "repeat", {bytes / 115000}};
  return record;
}

inline Record with_rates(Record record, std::vector<double> mib_per_s) {
  for (double& rate : mib_per_s) rate *= 1048576;
  record.metrics["payload_bytes_per_s"].samples = std::move(mib_per_s);
  return record;
}

inline Record of_ranks(int ranks, std::vector<double> mib_per_s) {
  Record record = with_rates(read_cell("pfs", 2, "cold", 1), mib_per_s);
  record.metrics["samples_per_s"].samples = std::move(mib_per_s);
  record.parameters["ranks"] = ranks;
  record.environment["ranks"] = Json::array();
  for (int rank = 0; rank < ranks; ++rank)
    record.environment["ranks"].push_back(Json{{"rank", rank}, {"host", rank % 2 == 0 ? "a" : "b"}});
  return record;
}

inline Record by_fio(int threads, double mib_per_s) {
  Record record;
  record.id = "fio-" + std::to_string(threads);
  record.command = "fio";
  record.label["peer"] = "fio-3.33";
  record.parameters = Json{{"tier", "disk"}, {"threads", threads}, {"rw", "randread"},    {"block", 131072},
                           {"depth", 8},     {"direct", 1},        {"ioengine", "libaio"}};
  record.metrics["payload_bytes_per_s"] = {"B/s", Better::higher, "run", {mib_per_s * 1048576}};
  record.metrics["ops_per_s"] = {"1/s", Better::higher, "run", {mib_per_s * 8}};
  record.metrics["latency_ns_p99"] = {"ns", Better::lower, "run", {2.5e6}};
  return record;
}

inline Record train_cell(int prefetch, double wait_s, int steps = 100) {
  Record record;
  record.started = "2026-11-20T09:30:00Z";
  record.command = "train";
  record.parameters = Json{{"app", "alexnet"}, {"prefetch", prefetch}, {"threads", 4}};
  record.tiers["data"] = Json{{"name", "disk"}};
  record.metrics["steps"] = {"1", Better::neither, "run", {double(steps)}};
  record.metrics["input_wait_s"] = {"s", Better::lower, "run", {wait_s}};
  return record;
}

// One run of an arm of `checkpoint bench`, with saves of 100 MB and ceilings of 1 GB/s (fast) and 100 MB/s
// (slow).
inline Record saving_cell(const std::string& arm, int pair, std::vector<double> block_s) {
  Record record;
  record.id = "c0ffee-" + std::to_string(pair) + (arm == "direct" ? "0" : "1");
  record.started = "2026-11-20T09:30:00Z";
  record.command = "checkpoint";
  record.parameters =
      Json{{"payload", "alexnet-adam"}, {"arm", arm}, {"every", 5}, {"steps", 20}, {"mtbf_s", 86400.0}};
  record.pair = Json{{"suite", "checkpoint"}, {"index", pair}, {"arm", arm}};
  record.tiers["checkpoint"] = Json{{"name", "disk"}, {"memory", false}};
  record.metrics["ceiling_bytes_per_s.slow"] = {"B/s", Better::higher, "run", {1e8}};
  if (arm != "direct") {
    record.tiers["burst_buffer"] = Json{{"name", "shm"}, {"memory", true}};
    record.metrics["ceiling_bytes_per_s.fast"] = {"B/s", Better::higher, "run", {1e9}};
  }
  record.metrics["checkpoint_bytes"] = {"B", Better::neither, "checkpoint", {1e8}};
  record.metrics["checkpoint_block_s"] = {"s", Better::lower, "checkpoint", std::move(block_s)};
  return record;
}

}  // namespace penstock
