// Runs DLIO's workloads (such as those of MLPerf Storage) from their own YAML files. Samples are read and
// batched as stored, and steps take the time that the file gives.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/cli/shell_quoting.hpp"
#include "miniapps/pipeline/transform.hpp"
#include "miniapps/train/dlio_workload.hpp"
#include "miniapps/train/miniapp.hpp"
#include "miniapps/train/train_plan.hpp"

namespace penstock {
namespace {

Result<Transform> make_dlio(const TrainRequest&) {
  return leave_as_stored();
}

std::string duration_of(double seconds) {
  return fmt::format("{}ns", std::llround(seconds * 1e9));
}

std::string accelerator_of(const ComputationTime& time) {
  if (std::llround(time.mean_s * 1e9) <= 0) return "none";
  const std::string step = "emulated:step=" + duration_of(time.mean_s);
  if (std::llround(time.deviation_s * 1e9) <= 0) return step;
  // The longest time by which a step with a uniform distribution may be longer or shorter. A nanosecond less,
  // since a jitter must be shorter than the step.
  const double jitter_s = std::min(std::sqrt(3.0) * time.deviation_s, time.mean_s - 1e-9);
  if (time.distribution == "uniform") return step + ",jitter=" + duration_of(jitter_s);
  return step + ",stdev=" + duration_of(time.deviation_s) +
         (time.distribution == "normal" ? "" : fmt::format(",distribution={}", time.distribution));
}

// Returns the tier of a workload whose data are in an object store, such as
// "s3:http://HOST/BUCKET/FOLDER/train".
Result<std::string> object_store_data(const DlioWorkload& workload) {
  std::string endpoint = workload.endpoint;
  for (const char* name : {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"})
    if (const char* const value = std::getenv(name); endpoint.empty() && value != nullptr) endpoint = value;
  if (endpoint.empty())
    return make_error(Errc::invalid_argument,
                      "'storage.storage_type' is s3, but storage.storage_options.endpoint_url is not set: "
                      "set it with an override, or pass the data as --data s3:ENDPOINT/BUCKET/FOLDER");
  constexpr std::string_view kScheme = "s3://";
  std::string path = workload.data_folder;
  if (!path.starts_with(kScheme)) path = workload.storage_root + "/" + path;
  if (path.starts_with(kScheme)) path.erase(0, kScheme.size());
  if (path.starts_with('/'))
    return make_error(Errc::invalid_argument,
                      "'storage.storage_type' is s3, but storage.storage_root, the bucket, is not set: set "
                      "it with an override, or pass the data as --data s3:ENDPOINT/BUCKET/FOLDER");
  while (endpoint.ends_with('/')) endpoint.pop_back();
  // A slash after the bucket is no part of the objects' names, and neither are two slashes after another.
  path = (std::filesystem::path(path) / "train").lexically_normal();
  return "s3:" + endpoint + "/" + path;
}

// Returns the training data as the file gives them: DLIO keeps them in `train`, below its data folder.
Result<std::string> data_of(const DlioWorkload& workload) {
  constexpr std::string_view kFormats[] = {"tfrecord", "hdf5", "npz", "npy", "jpeg", "png"};
  if (std::find(std::begin(kFormats), std::end(kFormats), workload.format) == std::end(kFormats))
    return make_error(
        Errc::invalid_argument,
        "'dataset.format' is {}, which is not supported: pass data in another format as --data TIER",
        workload.format == "parquet" ? "Parquet" : workload.format);
  for (const std::string* text : {&workload.data_folder, &workload.storage_root, &workload.endpoint})
    if (text->find("${") != std::string::npos)
      return make_error(Errc::invalid_argument,
                        "'{}' contains a reference that only Hydra can resolve: pass the data as --data TIER",
                        *text);
  if (workload.data_folder.empty()) return std::string();
  if (workload.storage_type == "s3") return object_store_data(workload);
  if (workload.storage_type == "aistore")
    return make_error(Errc::invalid_argument,
                      "'storage.storage_type' is aistore: pass the data as --data TIER (AIStore also answers "
                      "S3 requests: --data s3:http://HOST:PORT/s3/BUCKET/FOLDER)");
  constexpr std::string_view kFileTypes[] = {"local_fs", "parallel_fs", "direct_fs"};
  if (std::find(std::begin(kFileTypes), std::end(kFileTypes), workload.storage_type) == std::end(kFileTypes))
    return make_error(Errc::invalid_argument,
                      "'storage.storage_type' is {}, which is unknown: pass the data as --data TIER",
                      workload.storage_type);
  const std::filesystem::path folder = std::filesystem::path(workload.storage_root) / workload.data_folder;
  std::error_code ignored;
  const std::filesystem::path train = folder / "train";
  return std::filesystem::is_directory(train, ignored) ? train.string() : folder.string();
}

// Why a workload that does not train cannot be run, and the command that does what it does.
Error trains_nothing(const DlioWorkload& workload) {
  std::string command = "to make data: penstock generate";
  if (workload.writes_checkpoints) {
    command = "penstock checkpoint bench " + shell_word(workload.checkpoint_folder);
    for (const std::string_view size : {"8b", "70b", "405b", "1t"})
      if (workload.name.find(fmt::format("_{}", size)) != std::string::npos ||
          workload.name.ends_with(fmt::format("-{}", size)))
        command += fmt::format(" --payload llama3-{}", size);
  }
  return make_error(Errc::invalid_argument, "workload '{}': 'workflow.train' is false: it {}; {}",
                    workload.name, workload.writes_checkpoints ? "only writes checkpoints" : "trains nothing",
                    command);
}

// Sets what the workload says about the data, which are compared with the data that are read.
Result<void> describe_data(const DlioWorkload& workload, TrainRequest& request) {
  if (__builtin_mul_overflow(workload.files, workload.samples_per_file, &request.described_samples))
    return make_error(Errc::invalid_argument, "workload '{}': {} files of {} samples are too many to count",
                      request.workload, workload.files, workload.samples_per_file);
  request.described_format = workload.format;
  request.described_sample_bytes = workload.sample_bytes;
  return success();
}

Result<std::vector<std::string>> apply_workload(const Options& options,
                                                const std::vector<std::string>& overrides,
                                                TrainRequest& request) {
  PENSTOCK_ASSIGN(const DlioWorkload workload, read_dlio_workload(request.workload, overrides));
  if (!workload.trains) return trains_nothing(workload);
  request.batch = workload.batch;
  request.prefetch = workload.threads == 0 ? 0 : workload.prefetch;
  request.threads = std::max<uint64_t>(1, workload.threads);
  request.limits = {.batches = workload.steps, .epochs = workload.epochs};
  request.accelerator = accelerator_of(workload.computation);
  request.shuffle = workload.shuffles_files || workload.shuffles_samples ? Shuffle::global : Shuffle::none;
  request.required_utilization = workload.au;
  request.excluded_steps = {workload.excluded_first_steps, workload.excluded_last_steps};
  if (!options.given("data")) {
    Result<std::string> data = data_of(workload);
    if (!data.ok())
      return make_error(Errc::invalid_argument, "workload '{}': {}", request.workload, data.error().what);
    request.data = *std::move(data);
  }
  PENSTOCK_TRY(describe_data(workload, request));
  std::vector<std::string> notes;
  if (request.accelerator == "none" && workload.computation.mean_s > 0)
    notes.push_back(workload.name + ": its computation_time is below 1 ns, so steps take no time");
  if (options.given("batch") && !options.given("accelerator") &&
      uint64_t(options.integer("batch")) != workload.batch && request.accelerator != "none")
    notes.push_back(
        fmt::format("{}: --batch {} replaces the workload's batch_size {}; a step still takes the "
                    "computation_time of {} samples",
                    workload.name, options.integer("batch"), workload.batch, workload.batch));
  if (workload.threads == 0)
    notes.push_back(workload.name +
                    ": with read_threads 0 the training thread reads by itself: one thread, no prefetch");
  for (const std::string& note : workload.notes) notes.push_back(workload.name + ": " + note);
  const uint64_t accelerators = request.accelerators * uint64_t(request.ranks->size());
  if (const uint64_t left = files_read_by_dlio(workload, accelerators); left < workload.files)
    notes.push_back(fmt::format(
        "{}: DLIO (since commit ad8ce8b) would use {} of the workload's {} files; penstock uses all",
        workload.name, left, workload.files));
  return notes;
}

}  // namespace

extern const MiniAppInfo miniapp_dlio;
const MiniAppInfo miniapp_dlio{
    .name = "dlio",
    .summary = "runs DLIO workloads from their own files: --workload FILE.yaml [++workload.KEY=VALUE...]",
    .options = {},
    .reproduces = "DLIO (Devarajan et al., CCGrid 2021) and the training workloads of MLPerf Storage",
    .codec = "",
    .defaults = {.batch = 1, .prefetch = 2},
    .make = make_dlio,
    .workload = &apply_workload};

}  // namespace penstock
