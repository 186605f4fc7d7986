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

// Returns the jitter: the longest time by which a step may be longer or shorter, in seconds. The jitter is
// uniform, with the standard deviation that the workload gives.
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
  PENSTOCK_ASSIGN(const DlioWorkload workload, read_dlio_workload(request.workload, overrides));
  if (workload.deviation_s > 0 && jitter_of(workload) >= workload.computation_s)
    return make_error(Errc::invalid_argument,
                      "workload '{}': a stdev of {} s is too wide for a computation_time of {} s",
                      request.workload, workload.deviation_s, workload.computation_s);
  request.batch = workload.batch;
  request.prefetch = workload.threads == 0 ? 0 : workload.prefetch;
  request.threads = std::max<uint64_t>(1, workload.threads);
  request.limits = {.batches = workload.steps, .epochs = workload.epochs};
  request.accelerator = accelerator_of(workload);
  request.shuffle = workload.shuffles ? Shuffle::global : Shuffle::none;
  request.data = data_of(workload);
  request.required_utilization = workload.au;
  if (__builtin_mul_overflow(workload.files, workload.samples_per_file, &request.described_samples))
    return make_error(Errc::invalid_argument,
                      "workload '{}': {} files of {} samples are more than can be counted", request.workload,
                      workload.files, workload.samples_per_file);
  request.described_format = workload.format;
  std::vector<std::string> notes;
  if (workload.deviation_s > 0)
    notes.push_back(fmt::format("{}: its stdev of {} s becomes an evenly spread jitter of up to {}",
                                workload.name, workload.deviation_s, duration_of(jitter_of(workload))));
  if (workload.threads == 0)
    notes.push_back(workload.name +
                    ": with read_threads 0 the training reads by itself: one thread, and nothing ahead");
  for (const std::string& note : workload.notes) notes.push_back(workload.name + ": " + note);
  const uint64_t accelerators = request.accelerators * uint64_t(request.ranks->size());
  if (const uint64_t left = files_read_by_dlio(workload, accelerators); left < workload.files)
    notes.push_back(fmt::format(
        "{}: DLIO (from its commit ad8ce8b on) would leave {} of the workload's {} files; here all are used",
        workload.name, left, workload.files));
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
