// Runs DLIO's workloads (such as those of MLPerf Storage) from their own YAML files. Samples are read and
// batched as stored, and steps take the time that the file gives.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "miniapps/pipeline/transform.hpp"
#include "miniapps/train/dlio_workload.hpp"
#include "miniapps/train/miniapp.hpp"
#include "miniapps/train/train_plan.hpp"

namespace penstock {
namespace {

Result<Transform> make(const TrainRequest&) {
  return leave_as_stored();
}

std::string duration_of(double seconds) {
  const auto us = uint64_t(std::llround(seconds * 1e6));
  return us % 1000 == 0 ? fmt::format("{}ms", us / 1000) : fmt::format("{}us", us);
}

// Returns the jitter: the most by which a step may be longer or shorter. The jitter is uniform, with the
// standard deviation that the workload gives.
double jitter_of(const DlioWorkload& workload) {
  return std::sqrt(3.0) * workload.deviation_s;
}

std::string accelerator_of(const DlioWorkload& workload) {
  if (workload.computation_s <= 0) return "none";
  std::string text = "emulated:step=" + duration_of(workload.computation_s);
  if (workload.deviation_s > 0) text += ",jitter=" + duration_of(jitter_of(workload));
  return text;
}

// Returns the folder of the training data: DLIO keeps it in `train`, below its data folder.
std::string data_of(const DlioWorkload& workload) {
  if (workload.data_folder.empty()) return "";
  const std::filesystem::path train = std::filesystem::path(workload.data_folder) / "train";
  std::error_code ignored;
  return std::filesystem::is_directory(train, ignored) ? train.string() : workload.data_folder;
}

Result<std::vector<std::string>> apply_workload(const std::vector<std::string>& overrides,
                                                TrainRequest& request) {
  PENSTOCK_ASSIGN(const DlioWorkload described, read_dlio_workload(request.workload, overrides));
  if (described.deviation_s > 0 && jitter_of(described) >= described.computation_s)
    return make_error(Errc::invalid_argument,
                      "workload '{}': a stdev of {} s is too wide for a computation_time of {} s",
                      request.workload, described.deviation_s, described.computation_s);
  request.batch = described.batch;
  request.prefetch = described.threads == 0 ? 0 : described.prefetch;
  request.threads = std::max<uint64_t>(1, described.threads);
  request.limits = {.batches = described.steps, .epochs = described.epochs};
  request.accelerator = accelerator_of(described);
  request.shuffle = described.shuffles ? Shuffle::global : Shuffle::none;
  request.data = data_of(described);
  request.required_utilization = described.au;
  if (__builtin_mul_overflow(described.files, described.samples_per_file, &request.described_samples))
    return make_error(Errc::invalid_argument,
                      "workload '{}': {} files of {} samples are more than can be counted", request.workload,
                      described.files, described.samples_per_file);
  request.described_format = described.format;
  std::vector<std::string> notes;
  if (described.deviation_s > 0)
    notes.push_back(fmt::format("{}: its stdev of {} s becomes an evenly spread jitter of up to {}",
                                described.name, described.deviation_s, duration_of(jitter_of(described))));
  if (described.threads == 0)
    notes.push_back(described.name +
                    ": with read_threads 0 the training reads by itself: one thread, and nothing ahead");
  for (const std::string& note : described.notes) notes.push_back(described.name + ": " + note);
  const uint64_t accelerators = request.accelerators * uint64_t(request.ranks->size());
  if (const uint64_t left = files_read_by_dlio(described, accelerators); left < described.files)
    notes.push_back(fmt::format(
        "{}: DLIO (from its commit ad8ce8b on) would leave {} of the workload's {} files; here all are used",
        described.name, left, described.files));
  return notes;
}

}  // namespace

extern const MiniAppInfo miniapp_dlio;
const MiniAppInfo miniapp_dlio{
    .name = "dlio",
    .summary = "DLIO's workloads from their own files: --workload FILE.yaml [++workload.KEY=VALUE...]",
    .options = {},
    .reproduces = "DLIO (Devarajan et al., CCGrid 2021) and the training workloads of MLPerf Storage",
    .codec = "",
    .defaults = {.batch = 1, .prefetch = 2},
    .make = &make,
    .workload = &apply_workload};

}  // namespace penstock
