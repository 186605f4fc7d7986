#include "miniapps/train/dlio_workload.hpp"

#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <filesystem>
#include <limits>
#include <optional>
#include <string_view>

#include "io_backends/core/options.hpp"

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

Error wrong_value(std::string_view what, const Value& value) {
  return make_error(Errc::invalid_argument, "needs {}, not '{}'", what,
                    value.IsScalar() ? value.Scalar() : "a mapping or a list");
}

template <uint64_t DlioWorkload::*kMember>
Result<void> take_count(DlioWorkload& workload, const Value& value) {
  uint64_t count = 0;
  if (!value.IsScalar() || value.Scalar().starts_with('-') ||
      !YAML::convert<uint64_t>::decode(value, count) || count == 0 ||
      count > std::numeric_limits<int64_t>::max())
    return wrong_value("a whole number from 1 on", value);
  workload.*kMember = count;
  return success();
}

Result<double> parse_number(const Value& value) {
  double result = 0;
  if (!value.IsScalar() || !YAML::convert<double>::decode(value, result) || !(result >= 0) || result > 1e6)
    return wrong_value("a number from 0 on", value);
  return result;
}

Result<void> take_computation(DlioWorkload& workload, const Value& value) {
  if (!value.IsMap()) {
    PENSTOCK_ASSIGN(workload.computation_s, parse_number(value));
    workload.deviation_s = 0;  // a number without `stdev` means that all steps take this time
    return success();
  }
  for (const auto& part : value) {
    const auto name = part.first.as<std::string>();
    if (name == "mean") {
      PENSTOCK_ASSIGN(workload.computation_s, parse_number(part.second));
    } else if (name == "stdev") {
      PENSTOCK_ASSIGN(workload.deviation_s, parse_number(part.second));
    } else if (name == "type") {
      if (part.second.Scalar() != "normal") return wrong_value("the distribution 'normal'", part.second);
    } else {
      return unknown_name("part of a time", name, {"mean", "stdev", "type"});
    }
  }
  return success();
}

Result<void> take_deviation(DlioWorkload& workload, const Value& value) {
  PENSTOCK_ASSIGN(workload.deviation_s, parse_number(value));
  return success();
}

Result<void> take_au(DlioWorkload& workload, const Value& value) {
  PENSTOCK_ASSIGN(workload.au, parse_number(value));
  if (workload.au <= 0 || workload.au > 1) return wrong_value("a part of 1", value);
  return success();
}

Result<void> take_steps(DlioWorkload& workload, const Value& value) {
  if (value.IsScalar() && value.Scalar() == "-1") return success();
  return take_count<&DlioWorkload::steps>(workload, value);
}

template <uint64_t DlioWorkload::*kMember>
Result<void> take_count_or_none(DlioWorkload& workload, const Value& value) {
  if (value.IsScalar() && value.Scalar() == "0") {
    workload.*kMember = 0;
    return success();
  }
  return take_count<kMember>(workload, value);
}

Result<void> take_shuffle(DlioWorkload& workload, const Value& value) {
  const std::string text = value.IsScalar() ? value.Scalar() : "";
  if (text == "seed" || text == "random") {
    workload.shuffles = true;
  } else if (text != "off" && text != "false") {  // in YAML `off` means false
    return wrong_value("seed, random or off", value);
  }
  return success();
}

template <std::string DlioWorkload::*kMember>
Result<void> take_text(DlioWorkload& workload, const Value& value) {
  if (!value.IsScalar() || value.Scalar().empty()) return wrong_value("a word", value);
  workload.*kMember = value.Scalar();
  return success();
}

Result<void> take_storage(DlioWorkload&, const Value& value) {
  if (value.IsScalar() && value.Scalar() == "local_fs") return success();
  return wrong_value("local_fs (give data elsewhere as --data TIER)", value);
}

// Whether the value switches something on: it is set, and not false.
bool is_set(const Value& value) {
  if (!value.IsScalar()) return true;
  const std::string& text = value.Scalar();
  return text != "false" && text != "False" && text != "0" && text != "0.0" && text != "none" &&
         text != "off";
}
template <const char* kSentence>
Result<void> take_note(DlioWorkload& workload, const Value& value) {
  if (is_set(value)) workload.notes.emplace_back(kSentence);
  return success();
}

constexpr char kNoCheckpoints[] = "its checkpoints are not written: this measures reading";
constexpr char kNoEvaluation[] = "its evaluation is not run: this measures training";
constexpr char kNoGeneration[] = "data are not generated here: penstock generate makes them";
constexpr char kNoPreprocessing[] =
    "its preprocess_time is not slept: preprocessing that is real takes its own time";
constexpr char kDirectNote[] = "its odirect is a matter of the tier here: --data posix:DIR,direct=1";
constexpr char kUnusedModelSize[] =
    "its model_size is without effect in DLIO, too, which reads model.model_size_bytes and otherwise writes "
    "checkpoints of 10,240 bytes";
constexpr char kOldKey[] =
    "it has keys of an older DLIO (record_length, epoch ...), which today's passes over in silence";
constexpr char kPicturesNote[] =
    "samples are read as they are stored: DLIO decodes pictures and throws them away (train alexnet decodes "
    "them)";

Result<void> take_format(DlioWorkload& workload, const Value& value) {
  PENSTOCK_TRY(take_text<&DlioWorkload::format>(workload, value));
  if (workload.format == "jpeg" || workload.format == "png") workload.notes.emplace_back(kPicturesNote);
  return success();
}

Result<void> take_train(DlioWorkload&, const Value& value) {
  if (is_set(value)) return success();
  return make_error(Errc::invalid_argument,
                    "is false: the workload trains nothing (penstock generate makes its data)");
}

Result<void> take_old_key(DlioWorkload& workload, const Value&) {
  workload.notes.emplace_back(kOldKey);
  return success();
}

// All keys that DLIO reads: those of LoadConfig() in its utils/config.py. Also the keys of older versions
// (take_old_key), which DLIO ignores now.
constexpr Key kKeys[] = {
    {"framework"},
    {"storage.storage_type", take_storage},
    {"storage.storage_root"},
    {"storage.storage_options.*"},
    {"dataset.record_length_bytes"},
    {"dataset.record_length_bytes_stdev"},
    {"dataset.record_length_bytes_resize"},
    {"dataset.record_length", take_old_key},
    {"dataset.record_length_std", take_old_key},
    {"dataset.record_length_stdev", take_old_key},
    {"dataset.record_length_resize", take_old_key},
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
    {"reader.dont_use_mmap"},
    {"reader.reader_classname"},
    {"reader.multiprocessing_context"},
    {"reader.data_loader"},
    {"reader.data_loader_classname"},
    {"reader.data_loader_sampler"},
    {"reader.read_threads", take_count_or_none<&DlioWorkload::threads>},
    {"reader.computation_threads"},
    {"reader.batch_size", take_count<&DlioWorkload::batch>},
    {"reader.batch_size_eval"},
    {"reader.prefetch_size", take_count_or_none<&DlioWorkload::prefetch>},
    {"reader.file_shuffle", take_shuffle},
    {"reader.file_access"},
    {"reader.shuffle_size"},
    {"reader.sample_shuffle", take_shuffle},
    {"reader.read_type"},
    {"reader.transfer_size"},
    {"reader.odirect", take_note<kDirectNote>},
    {"reader.preprocess_time", take_note<kNoPreprocessing>},
    {"reader.preprocess_time_stdev"},
    {"reader.pin_memory"},
    {"reader.transformed_record_dims.*"},
    {"reader.transformed_record_element_type"},
    {"train.epochs", take_count<&DlioWorkload::epochs>},
    {"train.epoch", take_old_key},
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
    {"checkpoint.checkpoint_folder"},
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
    {"output.metric.*"},
    {"workflow.train", take_train},
    {"workflow.generate_data", take_note<kNoGeneration>},
    {"workflow.evaluation", take_note<kNoEvaluation>},
    {"workflow.checkpoint", take_note<kNoCheckpoints>},
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

Error unknown_key(const std::string& name) {
  std::vector<std::string_view> all_keys;
  for (const Key& key : kKeys) all_keys.push_back(key.name);
  const std::string section = name.substr(0, name.find('.'));
  std::vector<std::string_view> section_keys;
  for (const std::string_view key : all_keys)
    if (key.starts_with(section + ".")) section_keys.push_back(key);
  return unknown_name("key of DLIO's", name, section_keys.empty() ? all_keys : section_keys);
}

Result<void> take_key(DlioWorkload& workload, const std::string& name, const Value& value) {
  const Key* const key = find_key(name.starts_with("data_reader.") ? name.substr(5) : name);
  if (key == nullptr) return unknown_key(name);
  if (key->take == nullptr) return success();
  Result<void> taken = key->take(workload, value);
  if (taken.ok()) return taken;
  Error error = std::move(taken).error();
  error.what = "'" + name + "' " + error.what;
  return error;
}

Result<void> take_section(DlioWorkload& workload, const std::string& section, const Value& values) {
  if (section == "model" && values.IsScalar())
    // Older workload files have `model: NAME` without a section.
    return take_key(workload, "model.name", values);
  if (section == "framework") return take_key(workload, section, values);
  if (values.IsNull()) return success();
  if (!values.IsMap()) return make_error(Errc::invalid_argument, "'" + section + "' needs keys below it");
  for (const auto& entry : values)
    PENSTOCK_TRY(take_key(workload, section + "." + entry.first.as<std::string>(), entry.second));
  return success();
}

Result<void> take_override(DlioWorkload& workload, const std::string& argument) {
  constexpr std::string_view kPrefix = "++workload.";
  const size_t equals = argument.find('=');
  if (!argument.starts_with(kPrefix) || equals == std::string::npos)
    return make_error(Errc::invalid_argument,
                      "'" + argument + "' is no override: they are written ++workload.SECTION.KEY=VALUE");
  const std::string name = argument.substr(kPrefix.size(), equals - kPrefix.size());
  const Value value = YAML::Load(argument.substr(equals + 1));
  // An override may set one part of a value. So train.computation_time.mean sets the part `mean` of the key
  // train.computation_time.
  if (const size_t dot = name.rfind('.'); find_key(name) == nullptr && dot != std::string::npos)
    if (const std::string parent = name.substr(0, dot); find_key(parent) != nullptr) {
      Value part;
      part[name.substr(dot + 1)] = value;
      return take_key(workload, parent, part);
    }
  return take_key(workload, name, value);
}

Result<DlioWorkload> parse_workload(const std::string& file, const std::vector<std::string>& overrides) {
  DlioWorkload workload;
  workload.name = std::filesystem::path(file).stem();
  const Value document = YAML::LoadFile(file);
  if (!document.IsMap())
    return make_error(Errc::invalid_argument,
                      "'" + file + "' is no workload: it has no sections such as 'dataset:'");
  for (const auto& section : document)
    PENSTOCK_TRY(take_section(workload, section.first.as<std::string>(), section.second));
  for (const std::string& argument : overrides) PENSTOCK_TRY(take_override(workload, argument));
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
