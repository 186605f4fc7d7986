// Format: tar shards for WebDataset. The files of a sample follow each other, and their names are equal up to
// the first dot. docs/reference/formats.md lists the files.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "datagen/format/coalescing_writer.hpp"
#include "datagen/format/format.hpp"
#include "datagen/format/npy_header.hpp"
#include "datagen/format/object_names.hpp"
#include "datagen/format/object_window.hpp"
#include "datagen/format/sample_arrays.hpp"
#include "datagen/format/sample_type.hpp"
#include "datagen/format/sharded_format.hpp"
#include "datagen/format/tar.hpp"
#include "io_backends/core/text.hpp"

namespace penstock {

extern const FormatInfo format_webdataset;

namespace {

constexpr std::array<std::byte, 2 * kTarBlockBytes> kZeros{};
constexpr uint64_t kMostLabelFileBytes = 256;

// The file that stores a field in the archive. Its name is the sample's key and `suffix`: ".jpeg", or
// ".data.npy" if there are several fields. `is_npy`: the file is an array in NumPy's format.
struct FieldFile {
  std::string suffix;
  bool is_npy;
};

FieldFile field_file(const Field& field, bool is_only_field) {
  constexpr std::string_view kNpyExtension = ".npy";
  const bool is_npy = !field.varies || field.extension == kNpyExtension;
  std::string suffix(is_npy ? kNpyExtension : field.extension.empty() ? ".bin" : field.extension);
  suffix = lower_case(suffix);
  if (is_only_field) return {suffix, is_npy};
  std::string name(field.name);
  std::replace(name.begin(), name.end(), '/', '_');
  return {fmt::format(".{}{}", name, suffix), is_npy};
}

class TarWriter final : public ObjectWriter {
 public:
  TarWriter(std::unique_ptr<Writer> writer, std::span<const Field> fields)
      : writer_(std::move(writer)), fields_(fields) {
    for (const Field& field : fields) files_.push_back(field_file(field, fields.size() == 1));
  }

  Result<Placement> add(const SampleBytes& sample) override {
    // If the key has no '/', rfind() returns npos, npos + 1 is 0, and the whole key is taken.
    const std::string_view base = sample.key.substr(sample.key.rfind('/') + 1);
    if (base.empty() || base.find('.') != std::string_view::npos)
      return make_error(Errc::invalid_argument, "sample '{}': a WebDataset key must not contain a dot",
                        sample.key);
    if (sample.label != kNoLabel) {
      const std::string label = std::to_string(sample.label);
      PENSTOCK_TRY(put_header(sample.key, ".cls", label.size()));
      PENSTOCK_TRY(writer_.append(label));
      PENSTOCK_TRY(append_padding(label.size()));
    }
    PENSTOCK_ASSIGN(const Placement payload, add_file(sample, 0));
    for (size_t i = 1; i < files_.size(); ++i) PENSTOCK_TRY(add_file(sample, i));
    return payload;
  }

  Result<PublishedObject> publish(Durability durability, const Approval& approve) override {
    PENSTOCK_TRY(writer_.append(kZeros));
    return writer_.publish(durability, approve);
  }

 private:
  Result<Placement> add_file(const SampleBytes& sample, size_t i) {
    const FieldBytes& bytes = sample.fields[i];
    std::vector<std::byte> npy_head;  // the NumPy header before the bytes, if any
    if (files_[i].is_npy) {
      const uint64_t side = bytes.bytes / element_bytes(fields_[i].element);
      npy_head =
          npy_header(fields_[i].element,
                     fields_[i].varies ? std::span(&side, 1) : std::span<const uint64_t>(fields_[i].shape));
    }
    const uint64_t length = npy_head.size() + bytes.bytes;
    PENSTOCK_TRY(put_header(sample.key, files_[i].suffix, length));
    PENSTOCK_TRY(writer_.append(npy_head));
    const Placement placement{writer_.offset(), bytes.bytes};
    PENSTOCK_TRY(writer_.append(bytes));
    PENSTOCK_TRY(append_padding(length));
    return placement;
  }
  Result<void> put_header(std::string_view key, std::string_view suffix, uint64_t bytes) {
    name_.assign(key);
    name_ += suffix;
    header_.clear();
    put_tar_header(header_, name_, bytes);
    return writer_.append(header_);
  }
  Result<void> append_padding(uint64_t bytes) {
    return writer_.append(std::span(kZeros).first(tar_padding(bytes)));
  }

  CoalescingWriter writer_;
  const std::span<const Field> fields_;
  std::vector<FieldFile> files_;
  std::string name_;
  std::vector<std::byte> header_;
};

// What is known about a sample from those of its files that have been read so far.
struct TarSample {
  std::string base;  // the key without its folder
  std::string label;
  std::optional<Placement> payload;
  std::string codec;
  // True if the payload is so far a .json or .txt file. A later file of the sample then replaces it, unless
  // that file is a .json, .txt or .cls file.
  bool is_text_payload = false;
  std::string payload_name;  // name of the file with the payload
  std::string label_file;
};

// Groups the files of an archive into samples by their keys. Files of other samples may be between those of a
// sample. If a key comes again after other files, with a payload that the sample of this key already has, it
// begins another sample, as in WebDataset.
class TarScan {
 public:
  TarScan(ObjectWindow& window, const Format::Visit& visit_sample)
      : window_(window), visit_sample_(visit_sample) {}

  Result<void> run() {
    TarReader reader(window_);
    for (;;) {
      PENSTOCK_ASSIGN(const ArchiveMember* const member, reader.next());
      if (member == nullptr) break;
      PENSTOCK_TRY(add_member(*member));
    }
    for (const TarSample& sample : samples_)
      if (!sample.payload && !sample.label_file.empty())
        note_left_out(sample.label_file, "a label without a file of the same key");
    if (reader.links() > 0) note_left_out(reader.first_link(), "a link", reader.links());
    PENSTOCK_ASSIGN(const uint64_t end_bytes, reader.bytes_after_end());
    if (end_bytes > 0) note_left_out(fmt::format("the {} bytes after the end of the archive", end_bytes), "");
    report();
    return success();
  }

 private:
  Result<void> add_member(const ArchiveMember& member) {
    const std::string_view name = member.name;
    // If the name has no '/', rfind() returns npos, and npos + 1 is 0, the beginning of the name.
    const size_t base = name.rfind('/') + 1;
    const size_t dot = name.find('.', base);
    if (dot == std::string_view::npos || dot == base) {
      note_left_out(name, dot == base ? "hidden" : "a name without an extension");
      return success();
    }
    const std::string extension = lower_case(extension_of(name));
    const bool is_label = extension == ".cls";
    const bool is_text = extension == ".json" || extension == ".txt";
    const auto [found, is_new] = sample_of_key_.emplace(name.substr(0, dot), samples_.size());
    const bool is_next = !is_new && found->second == last_sample_;
    if (!is_new && !is_next && !is_label && !is_text) {
      const TarSample& earlier = samples_[found->second];
      if (earlier.payload && !earlier.is_text_payload) found->second = samples_.size();
    }
    if (found->second == samples_.size()) {
      samples_.emplace_back();
      samples_.back().base = name.substr(base, dot - base);
    }
    last_sample_ = found->second;
    TarSample& sample = samples_[last_sample_];
    if (is_label) return read_label(member, sample);
    if (sample.payload && (is_text || !sample.is_text_payload)) {
      note_unless_further_field(name, dot, is_text, sample.payload_name);
      return success();
    }
    return set_payload(member, is_text, sample);
  }

  // If the file is an array in NumPy's format, the payload begins after the header.
  Result<void> set_payload(const ArchiveMember& member, bool is_text, TarSample& sample) {
    sample.payload_name = member.name;
    sample.payload = {member.content.offset, member.content.length};
    sample.codec = codec_of(member.name);
    sample.is_text_payload = is_text;
    if (sample.codec != "npy") return success();
    const Result<NpyArray> array = read_npy(window_, sample.payload->offset, sample.payload->length);
    if (!array.ok() && array.error().code != Errc::unsupported) return array.error();
    if (array.ok()) {
      sample.payload = Placement{sample.payload->offset + array->header_bytes, array->data_bytes};
      sample.codec = "raw";
    }
    return success();
  }

  // Counts a file of the sample as left out, unless it is a further field of the sample. The caller calls it
  // with a file that did not become the payload. A file with the same name as the payload's file is left out.
  // Any other file is a further field if it is text, or if its name or that of the payload's file has a
  // second extension with a letter, such as ".mask.png". All others are left out: the second extensions of
  // "2024.05.17.jpg" are parts of a date.
  void note_unless_further_field(std::string_view name, size_t dot, bool is_text,
                                 const std::string& payload_name) {
    const auto names_field = [dot](std::string_view file) {
      const std::string_view extensions = file.substr(dot + 1);
      return extensions.substr(0, std::min(extensions.rfind('.'), extensions.size()))
                     .find_first_not_of(".0123456789") != std::string_view::npos &&
             extensions.find('.') != std::string_view::npos;
    };
    if (name == payload_name)
      note_left_out(name, "the second file of that name");
    else if (!is_text && !names_field(name) && !names_field(payload_name))
      note_left_out(name,
                    left_out_.count == 0 ? fmt::format("whose sample is '{}'", payload_name) : std::string());
  }

  void note_left_out(std::string_view name, std::string_view reason, uint64_t count = 1) {
    left_out_.count += count;
    if (left_out_.count > count) return;
    left_out_.first_name = name;
    left_out_.reason = reason;
  }

  Result<void> read_label(const ArchiveMember& member, TarSample& sample) {
    const Extent content = member.content;
    if (content.length > kMostLabelFileBytes) {
      note_left_out(member.name, fmt::format("a label of more than {} bytes", kMostLabelFileBytes));
      return success();
    }
    if (!sample.label_file.empty()) note_left_out(member.name, "the second label of its sample");
    sample.label_file = member.name;
    PENSTOCK_ASSIGN(const auto bytes, window_.at(content.offset, size_t(content.length)));
    sample.label = trim(as_text(bytes));
    return success();
  }

  // Reports all samples, and with the first of them what was left out. A sample without a payload is not
  // reported.
  void report() {
    for (const TarSample& sample : samples_)
      if (sample.payload)
        visit_sample_({.label_name = sample.label,
                       .placement = *sample.payload,
                       .codec = sample.codec,
                       .holds_statistics = sample.base == kStatisticsName,
                       .files_left_out = std::exchange(left_out_, {})});
  }

  ObjectWindow& window_;
  const Format::Visit& visit_sample_;
  std::vector<TarSample> samples_;                         // in the order of their first files
  std::unordered_map<std::string, size_t> sample_of_key_;  // by the key: the number of its latest sample
  size_t last_sample_ = 0;
  Format::LeftOutParts left_out_;
};

class WebDataset final : public ShardedFormat {
 public:
  explicit WebDataset(Shards shards) : ShardedFormat(shards, ".tar") {}

  Result<void> check(std::span<const Field> /*fields*/) const override { return success(); }

  Result<std::unique_ptr<ObjectWriter>> create(Backend& backend, const ObjectPlan& plan) const override {
    PENSTOCK_ASSIGN(auto writer, backend.create(plan.name));
    return std::make_unique<TarWriter>(std::move(writer), plan.fields);
  }

  Result<void> scan(Backend& backend, const Entry& object, const Visit& visit_sample) const override {
    PENSTOCK_ASSIGN(ObjectWindow window, ObjectWindow::open(backend, object));
    return TarScan(window, visit_sample).run();
  }
};

}  // namespace

const FormatInfo format_webdataset{
    .name = "webdataset",
    .summary = "tar shards with the files of samples, as in WebDataset",
    .options = kShardedOptions,
    .make = make_sharded<WebDataset>,
};

}  // namespace penstock
