#include "miniapps/train/dlio_workload.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <exception>
#include <filesystem>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "io_backends/core/options.hpp"
#include "io_backends/core/units.hpp"
#include "miniapps/train/hydra_file.hpp"

namespace penstock {
namespace {

using Value = YAML::Node;
using KeyReader = Result<void> (*)(DlioWorkload& workload, const Value& value);

// One key of DLIO's workload files. `take` reads its value into the workload. `take` is null if the key has
// nothing to do with reading or computing; then the value is ignored.
struct Key {
  std::string_view name;  // "reader.batch_size"; "model.transformer.*": all keys below it
  KeyReader take = nullptr;
};

constexpr double kLongestTime = 86400;  // of a step, in seconds

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

Error wrong_value(std::string_view what, const Value& value) {
  return make_error(Errc::invalid_argument, "needs {}, not '{}'", what,
                    value.IsScalar() ? value.Scalar()
                    : value.IsMap()  ? "a mapping"
                                     : "a list");
}

// Reads a boolean as YAML 1.1 and Python write it. nullopt: the value is none.
std::optional<bool> parse_bool(const Value& value) {
  bool result = false;
  if (!value.IsScalar() || !YAML::convert<bool>::decode(value, result)) return std::nullopt;
  return result;
}

Result<double> parse_number(const Value& value, double most = std::numeric_limits<double>::max()) {
  double result = 0;
  if (value.IsScalar()) {
    std::string text = value.Scalar();
    std::erase(text, '_');
    if (YAML::convert<double>::decode(Value(text), result) && result >= 0 && result <= most) return result;
  }
  return wrong_value(most == kLongestTime ? "a number of seconds from 0 to 86400" : "a number of at least 0",
                     value);
}

// Reads a whole number, also if it is written as 1_000 or 1e3.
Result<uint64_t> parse_whole(const Value& value, uint64_t least) {
  constexpr double kMost = 9e18;
  uint64_t exact = 0;  // also in base 8 or 16, as in 0x10
  if (value.IsScalar() && YAML::convert<uint64_t>::decode(value, exact) && exact >= least &&
      double(exact) <= kMost)
    return exact;
  const Result<double> number = parse_number(value, kMost);
  if (number.ok() && *number >= double(least) && *number == std::floor(*number)) return uint64_t(*number);
  return wrong_value(fmt::format("a whole number of at least {}", least), value);
}

template <uint64_t DlioWorkload::*kMember, uint64_t kLeast = 1>
Result<void> take_count(DlioWorkload& workload, const Value& value) {
  PENSTOCK_ASSIGN(workload.*kMember, parse_whole(value, kLeast));
  return success();
}

// Reads the numbers of a distribution. The distributions and the names of their parameters are those of
// sleep() in DLIO's utils/utility.py.
Result<ComputationTime> parse_distribution(const Value& value) {
  std::map<std::string, double> numbers;
  std::string type = "normal";
  for (const auto& part : value) {
    const auto name = part.first.as<std::string>();
    if (name == "type" && part.second.IsScalar()) {
      type = part.second.Scalar();
    } else if (is_one_of(name, {"mean", "stdev", "min", "max", "shape", "scale", "lam"})) {
      if (part.second.IsNull()) continue;
      PENSTOCK_ASSIGN(numbers[name], parse_number(part.second, kLongestTime));
    } else {
      return unknown_name("part of a time", name,
                          {"type", "mean", "stdev", "min", "max", "shape", "scale", "lam"});
    }
  }
  const auto lacks = [&](std::string_view name) {
    return make_error(Errc::invalid_argument, "of the type '{}' needs '{}'", type, name);
  };
  if (type == "normal") {
    if (!numbers.contains("mean") && !numbers.empty()) return lacks("mean");
    return ComputationTime{numbers["mean"], numbers["stdev"]};
  }
  if (type == "uniform") {
    for (const char* name : {"min", "max"})
      if (!numbers.contains(name)) return lacks(name);
    const double low = std::min(numbers["min"], numbers["max"]);
    const double high = std::max(numbers["min"], numbers["max"]);
    return ComputationTime{(low + high) / 2, (high - low) / 2 / std::sqrt(3.0), "uniform"};
  }
  if (type == "poisson") {
    if (!numbers.contains("lam")) return lacks("lam");
    return ComputationTime{numbers["lam"], std::sqrt(numbers["lam"]), "poisson"};
  }
  if (type != "gamma" && type != "exponential")
    return unknown_name("type of a time", type, {"normal", "uniform", "gamma", "exponential", "poisson"});
  if (!numbers.contains("scale")) return lacks("scale");
  if (type == "gamma" && !numbers.contains("shape")) return lacks("shape");
  const double shape = type == "gamma" ? numbers["shape"] : 1;
  return ComputationTime{shape * numbers["scale"], std::sqrt(shape) * numbers["scale"], "gamma"};
}

Result<void> take_computation(DlioWorkload& workload, const Value& value) {
  if (!value.IsMap()) {
    PENSTOCK_ASSIGN(workload.computation.mean_s, parse_number(value, kLongestTime));
    return success();
  }
  PENSTOCK_ASSIGN(workload.computation, parse_distribution(value));
  return success();
}

// As in DLIO, the deviation of this key replaces that of train.computation_time; other distributions than the
// normal one have no parameter of that name. The table has this key after train.computation_time.
Result<void> take_deviation(DlioWorkload& workload, const Value& value) {
  PENSTOCK_ASSIGN(const double deviation_s, parse_number(value, kLongestTime));
  if (workload.computation.distribution == "normal") workload.computation.deviation_s = deviation_s;
  return success();
}

Result<void> take_au(DlioWorkload& workload, const Value& value) {
  PENSTOCK_ASSIGN(workload.au, parse_number(value));
  if (workload.au <= 0 || workload.au > 1) return wrong_value("a fraction from 0 to 1", value);
  return success();
}

Result<void> take_sample_bytes(DlioWorkload& workload, const Value& value) {
  PENSTOCK_ASSIGN(workload.sample_bytes, parse_number(value));
  return success();
}

Result<void> take_steps(DlioWorkload& workload, const Value& value) {
  if (value.IsScalar() && value.Scalar() == "-1") return success();
  return take_count<&DlioWorkload::steps, 0>(workload, value);
}

template <bool DlioWorkload::*kMember>
Result<void> take_shuffle(DlioWorkload& workload, const Value& value) {
  if (const std::optional<bool> on = parse_bool(value)) {  // in YAML 1.1 `off` means false
    workload.*kMember = *on;
    return success();
  }
  if (!value.IsScalar() || !is_one_of(value.Scalar(), {"seed", "random"}))
    return wrong_value("seed, random or off", value);
  workload.*kMember = true;
  return success();
}

template <std::string DlioWorkload::*kMember>
Result<void> take_text(DlioWorkload& workload, const Value& value) {
  if (!value.IsScalar() || value.Scalar().empty()) return wrong_value("a word", value);
  workload.*kMember = value.Scalar();
  return success();
}

// Whether the value switches something on: it is set, and is neither false nor 0.
bool is_set(const Value& value) {
  return !value.IsScalar() ||
         (parse_bool(value).value_or(true) && !is_one_of(value.Scalar(), {"0", "0.0", "none", ""}));
}

template <bool DlioWorkload::*kMember>
Result<void> take_switch(DlioWorkload& workload, const Value& value) {
  if (!parse_bool(value) && (!value.IsScalar() || !is_one_of(value.Scalar(), {"0", "1"})))
    return wrong_value("true or false", value);
  workload.*kMember = is_set(value);
  return success();
}

template <const char* kSentence>
Result<void> take_note(DlioWorkload& workload, const Value& value) {
  if (is_set(value)) workload.notes.emplace_back(kSentence);
  return success();
}

constexpr char kNoCheckpoints[] = "its checkpoints are not written, because this measures reads";
constexpr char kNoEvaluation[] = "its evaluation is not run, because this measures training";
constexpr char kNoGeneration[] = "data are not generated here; to generate them: penstock generate";
constexpr char kNoPreprocessing[] = "its preprocess_time is ignored, because preprocessing is real here";
constexpr char kDirectNote[] = "its odirect is ignored; for direct I/O: --data posix:DIR,direct=1";
constexpr char kUnusedModelSize[] =
    "its model_size has no effect in DLIO either: DLIO reads model.model_size_bytes, and without it writes "
    "checkpoints of 10,240 bytes";
constexpr char kPicturesNote[] =
    "samples are read without decoding. DLIO decodes images and discards them; to decode: train alexnet";
constexpr char kOldLength[] =
    "its key dataset.record_length is for DLIO up to 2.0.0; newer versions use record_length_bytes";
constexpr char kOldEpoch[] = "its key train.epoch has no effect; DLIO uses train.epochs";

Result<void> take_format(DlioWorkload& workload, const Value& value) {
  PENSTOCK_TRY(take_text<&DlioWorkload::format>(workload, value));
  if (is_one_of(workload.format, {"jpeg", "png"})) workload.notes.emplace_back(kPicturesNote);
  return success();
}

Result<void> take_checkpoint(DlioWorkload& workload, const Value& value) {
  workload.writes_checkpoints = is_set(value);
  return take_note<kNoCheckpoints>(workload, value);
}

Result<void> take_old_length(DlioWorkload& workload, const Value& value) {
  workload.notes.emplace_back(kOldLength);
  return take_sample_bytes(workload, value);
}

// All keys that DLIO reads: those of LoadConfig() in utils/config.py of DLIO and of the fork that MLPerf
// Storage runs, and keys of older versions. They are read in this order.
constexpr Key kKeys[] = {
    {"framework"},
    {"storage.storage_type", take_text<&DlioWorkload::storage_type>},
    {"storage.storage_root", take_text<&DlioWorkload::storage_root>},
    {"storage.endpoint_url", take_text<&DlioWorkload::endpoint>},
    {"storage.storage_options.endpoint_url", take_text<&DlioWorkload::endpoint>},
    {"storage.storage_options.*"},
    {"storage.storage_library"},
    {"storage.endpoint_uris.*"},
    {"storage.use_mpi_endpoint_distribution"},
    {"storage.post_generation_settle_seconds"},
    {"dataset.record_length", take_old_length},
    {"dataset.record_length_bytes", take_sample_bytes},
    {"dataset.record_length_bytes_stdev"},
    {"dataset.record_length_bytes_resize"},
    {"dataset.record_length_std"},
    {"dataset.record_length_stdev"},
    {"dataset.record_length_resize"},
    {"dataset.num_files_train", take_count<&DlioWorkload::files>},
    {"dataset.num_files_eval"},
    {"dataset.generation_buffer_size"},
    {"dataset.num_samples_per_file", take_count<&DlioWorkload::samples_per_file>},
    {"dataset.data_folder", take_text<&DlioWorkload::data_folder>},
    {"dataset.num_subfolders_train"},
    {"dataset.num_subfolders_eval"},
    {"dataset.enable_chunking"},
    {"dataset.chunk_size"},
    {"dataset.compression"},
    {"dataset.compression_level"},
    {"dataset.file_prefix"},
    {"dataset.format", take_format},
    {"dataset.keep_files"},
    {"dataset.record_element_bytes"},
    {"dataset.record_element_type"},
    {"dataset.record_dims.*"},
    {"dataset.hdf5.*"},
    {"dataset.parquet.*"},
    {"dataset.data_gen_method"},
    {"dataset.skip_listing"},
    {"dataset.listing_validation_interval"},
    {"dataset.num_files_generated"},
    {"dataset.direct_fs"},
    {"reader.storage_library"},
    {"reader.seed"},
    {"reader.shuffle"},
    {"reader.write_threads"},
    {"reader.dont_use_mmap"},
    {"reader.reader_classname"},
    {"reader.multiprocessing_context"},
    {"reader.data_loader"},
    {"reader.data_loader_classname"},
    {"reader.data_loader_sampler"},
    {"reader.read_threads", take_count<&DlioWorkload::threads, 0>},
    {"reader.computation_threads"},
    {"reader.batch_size", take_count<&DlioWorkload::batch>},
    {"reader.batch_size_eval"},
    {"reader.prefetch_size", take_count<&DlioWorkload::prefetch, 0>},
    {"reader.file_shuffle", take_shuffle<&DlioWorkload::shuffles_files>},
    {"reader.file_access"},
    {"reader.shuffle_size"},
    {"reader.sample_shuffle", take_shuffle<&DlioWorkload::shuffles_samples>},
    {"reader.read_type"},
    {"reader.transfer_size"},
    {"reader.odirect", take_note<kDirectNote>},
    {"reader.preprocess_time", take_note<kNoPreprocessing>},
    {"reader.preprocess_time_stdev"},
    {"reader.pin_memory"},
    {"reader.transformed_record_dims.*"},
    {"reader.transformed_record_element_type"},
    {"train.epochs", take_count<&DlioWorkload::epochs>},
    {"train.epoch", take_note<kOldEpoch>},
    {"train.total_training_steps", take_steps},
    {"train.seed_change_epoch"},
    {"train.computation_time", take_computation},
    {"train.computation_time_stdev", take_deviation},
    {"train.seed"},
    {"evaluation.eval_time"},
    {"evaluation.eval_time_stdev"},
    {"evaluation.eval_after_epoch"},
    {"evaluation.epochs_between_evals"},
    {"checkpoint.model_size", take_note<kUnusedModelSize>},
    {"checkpoint.checkpoint_folder", take_text<&DlioWorkload::checkpoint_folder>},
    {"checkpoint.checkpoint_after_epoch"},
    {"checkpoint.epochs_between_checkpoints"},
    {"checkpoint.steps_between_checkpoints"},
    {"checkpoint.type"},
    {"checkpoint.checkpoint_mechanism_classname"},
    {"checkpoint.fsync"},
    {"checkpoint.time_between_checkpoints"},
    {"checkpoint.num_checkpoints_write"},
    {"checkpoint.num_checkpoints_read"},
    {"checkpoint.recovery_rank_shift"},
    {"checkpoint.rank_sync"},
    {"checkpoint.mode"},
    {"checkpoint.randomize_tensor"},
    {"checkpoint.ksm.*"},
    {"model.name", take_text<&DlioWorkload::name>},
    {"model.type"},
    {"model.model_size", take_note<kUnusedModelSize>},
    {"model.model_size_bytes"},
    {"model.optimization_groups.*"},
    {"model.num_layers"},
    {"model.layer_parameters.*"},
    {"model.model_datatype"},
    {"model.optimizer_datatype"},
    {"model.parallelism.*"},
    {"model.transformer.*"},
    {"output.folder"},
    {"output.log_file"},
    {"output.metric.exclude_start_steps", take_count<&DlioWorkload::excluded_first_steps, 0>},
    {"output.metric.exclude_end_steps", take_count<&DlioWorkload::excluded_last_steps, 0>},
    {"logging.*"},
    {"workflow.train", take_switch<&DlioWorkload::trains>},
    {"workflow.debug"},
    {"workflow.generate_data", take_note<kNoGeneration>},
    {"workflow.evaluation", take_note<kNoEvaluation>},
    {"workflow.checkpoint", take_checkpoint},
    {"workflow.profiling"},
    {"profiling.profiler"},
    {"profiling.iostat_devices.*"},
    {"metric.au", take_au},
};

const Key* find_key(std::string_view name) {
  for (const Key& key : kKeys) {
    if (key.name == name) return &key;
    if (!key.name.ends_with(".*")) continue;
    const std::string_view parent = key.name.substr(0, key.name.size() - 2);
    if (name == parent || (name.starts_with(parent) && name[parent.size()] == '.')) return &key;
  }
  return nullptr;
}

// Returns the names right below `parent` ("output.metric.") in the table; with "", those of the sections.
std::vector<std::string_view> names_below(std::string_view parent) {
  std::vector<std::string_view> names;
  for (const Key& key : kKeys) {
    if (!key.name.starts_with(parent)) continue;
    const std::string_view rest = key.name.substr(parent.size());
    const std::string_view name = rest.substr(0, rest.find('.'));
    if (name != "*" && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

// Checks the keys of the mapping that is below `parent` in the document. Refuses an unknown key that looks
// like a misspelt one of its mapping. Other unknown keys go to `ignored`, as DLIO ignores them.
Result<void> check_keys(const Value& mapping, const std::string& parent, std::vector<std::string>& ignored) {
  const std::vector<std::string_view> known = names_below(parent);
  for (const auto& entry : mapping) {
    const auto name = entry.first.as<std::string>();
    const std::string path = parent + name;
    // A key with a dot in its name is another one than that of the same path.
    const Key* const key = name.find('.') == std::string::npos ? find_key(path) : nullptr;
    const bool is_part = std::find(known.begin(), known.end(), name) != known.end();
    if (!is_part && !nearest_name(name, known).empty()) {
      std::vector<std::string> paths;
      for (const std::string_view one : known) paths.push_back(parent + std::string(one));
      return unknown_name("key of DLIO's", path, {paths.begin(), paths.end()});
    }
    const bool is_section = parent.empty() && key == nullptr;
    if (is_section && is_part && !entry.second.IsMap() && !entry.second.IsNull())
      return make_error(Errc::invalid_argument, "'" + name + "' needs keys below it");
    if (entry.second.IsMap() && (is_section || (is_part && (key == nullptr || key->name != path))))
      PENSTOCK_TRY(check_keys(entry.second, path + ".", ignored));
    else if (key == nullptr && !is_part)
      ignored.push_back(path);
  }
  return success();
}

// Returns the value of the key `name` ("reader.batch_size"), or null if the document has none.
Value find_value(const Value& document, std::string_view name) {
  Value at = document;
  while (!name.empty()) {
    if (!at.IsMap()) return {};
    const std::string_view part = name.substr(0, name.find('.'));
    name.remove_prefix(std::min(name.size(), part.size() + 1));
    const Value next = std::as_const(at)[std::string(part)];
    if (!next) return {};
    at.reset(next);
  }
  return at;
}

Result<void> take_keys(const Value& document, DlioWorkload& workload) {
  for (const Key& key : kKeys) {
    const Value value = find_value(document, key.name);
    if (key.take == nullptr || !value || value.IsNull()) continue;
    Result<void> taken = key.take(workload, value);
    if (taken.ok()) continue;
    Error error = std::move(taken).error();
    error.what = fmt::format("'{}' {}", key.name, error.what);
    return error;
  }
  return success();
}

Result<DlioWorkload> parse_workload(const std::string& file, const std::vector<std::string>& overrides) {
  DlioWorkload workload;
  workload.name = std::filesystem::path(file).stem();
  PENSTOCK_ASSIGN(Value document, load_hydra_file(file, "workload", overrides));
  if (const Value reader = std::as_const(document)["data_reader"]; reader) {  // DLIO takes both names
    document["reader"] = reader;
    document.remove("data_reader");
  }
  if (const Value model = std::as_const(document)["model"]; model && model.IsScalar()) {
    // Older workload files have `model: NAME` without a section.
    workload.name = model.Scalar();
    document.remove("model");
  }
  std::vector<std::string> ignored;
  PENSTOCK_TRY(check_keys(document, "", ignored));
  PENSTOCK_TRY(take_keys(document, workload));
  if (!ignored.empty())
    workload.notes.push_back(fmt::format("these keys are ignored, as in DLIO: {}", fmt::join(ignored, ", ")));
  std::sort(workload.notes.begin(), workload.notes.end());
  workload.notes.erase(std::unique(workload.notes.begin(), workload.notes.end()), workload.notes.end());
  return workload;
}

}  // namespace

Result<DlioWorkload> read_dlio_workload(const std::string& file, const std::vector<std::string>& overrides) {
  if (::access(file.c_str(), R_OK) != 0)
    return Error{Errc::invalid_argument, errno, "cannot read the workload '" + file + "'"};
  try {
    Result<DlioWorkload> workload = parse_workload(file, overrides);
    if (workload.ok()) return workload;
    Error error = std::move(workload).error();
    error.what = "workload '" + file + "': " + error.what;
    return error;
  } catch (const std::exception& error) {
    return make_error(Errc::invalid_argument, "workload '" + file + "': " + error.what());
  }
}

uint64_t files_read_by_dlio(const DlioWorkload& workload, uint64_t accelerators) {
  __extension__ using Wide = unsigned __int128;
  const Wide files = workload.files;
  // DLIO rounds down to a multiple of this number times the batch size.
  const Wide step_samples = static_cast<Wide>(workload.samples_per_file) * accelerators;
  if (step_samples == 0 || workload.batch == 0) return workload.files;
  if (step_samples > files || workload.batch > files / step_samples) return 0;
  return workload.files - uint64_t(files % (step_samples * workload.batch));
}

}  // namespace penstock
