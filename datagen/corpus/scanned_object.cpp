#include "datagen/corpus/scanned_object.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "datagen/codec/content_type.hpp"
#include "datagen/codec/gzip.hpp"
#include "datagen/format/object_window.hpp"
#include "datagen/format/sample_type.hpp"
#include "datagen/objects/object_check.hpp"
#include "io_backends/core/checksums/tfrecord_framing.hpp"
#include "io_backends/core/text.hpp"

namespace penstock {
namespace {

// Called if an object's bytes are not what its name says. If they are those of another known type, returns a
// text about the object that says so. Otherwise returns "".
std::string describe_other_content(Backend& backend, const Entry& object, std::string_view format) {
  auto window = ObjectWindow::open(backend, object);
  if (!window.ok()) return "";
  const auto bytes = window->at(0, size_t(std::min<uint64_t>(object.bytes, kContentTypeBytes)));
  if (!bytes.ok()) return "";
  if (format == "tfrecord") {
    // The error of a format that inflates the object itself says more than that it is compressed.
    if (begins_as_gzip(*bytes) || begins_as_zlib(*bytes)) return "";
    // A damaged object of the format itself begins with the length of a record, which may be any bytes.
    if (bytes->size() >= kTfRecordHeaderBytes && tfrecord_payload_bytes(bytes->first<kTfRecordHeaderBytes>()))
      return "";
  }
  constexpr NamedText kNames[] = {{"webdataset", "a tar archive"},
                                  {"npz", "a ZIP archive"},
                                  {"hdf5", "an HDF5 file"},
                                  {"npy", "a NumPy array"}};
  const ContentType* const found = content_type_of(*bytes);
  if (found == nullptr) return "";
  for (const auto& [name, type] : kNames)  // a damaged object of the format itself
    if (format == name && found->name == type) return "";
  return fmt::format("'{}' is {}", object.name,
                     describe_content(*bytes, fmt::format("what format {} reads", format)));
}

// Adds `more`, which was found later in the same object, to `sum`.
void add_left_out(Format::LeftOutParts& sum, const Format::LeftOutParts& more) {
  if (sum.count == 0 && more.count > 0) {
    sum.first_name = quoted_name(more.first_name);
    sum.reason = more.reason;
  }
  sum.count += more.count;
}

}  // namespace

Result<std::vector<ScanFormat>> scan_formats(const CorpusRequest& request) {
  std::vector<ScanFormat> formats;
  std::vector<ScanFormat> catch_all;
  for (const FormatInfo* info : format_registry().present()) {
    const bool is_catch_all = info->name == "files";
    std::vector<OptionWord> words;
    if (is_catch_all && !request.types.empty()) words.push_back({"types", request.types});
    if (takes_field(*info) && !request.field.empty()) words.push_back({"field", request.field});
    PENSTOCK_ASSIGN(const Options options, Options::parse(info->options, words, "format option"));
    PENSTOCK_ASSIGN(auto format, info->make(options));
    (is_catch_all ? catch_all : formats).push_back({info->name, takes_field(*info), std::move(format)});
  }
  for (ScanFormat& format : catch_all) formats.push_back(std::move(format));
  return formats;
}

void set_or_mark_mixed(std::string& so_far, std::string_view next) {
  if (so_far.empty())
    so_far = next;
  else if (so_far != next)
    so_far = "mixed";
}

bool is_content_error(const Error& error) {
  return concerns_object(error) && error.code != Errc::io && error.code != Errc::timed_out &&
         error.code != Errc::busy;
}

Result<void> ScannedObject::scan(Backend& backend, const ScanFormat& scan_format) {
  const Format& format = *scan_format.format;
  samples.clear();
  forms.clear();
  extents.clear();
  labels.clear();
  codec.clear();
  array.clear();
  holds_statistics = false;
  left_out_arrays = {};
  left_out_files = {};
  equal_arrays = {};
  content_error.reset();
  Entry entry;
  entry.bytes = item->bytes;
  folder->full_name(*item, entry.name);
  const std::string_view codec_by_name = codec_of(entry.name);
  bool too_many_samples = false;
  Result<void> done = format.scan(backend, entry, [&](const Format::FoundSample& found) {
    too_many_samples = too_many_samples || samples.size() == kMostSamplesPerObject;
    if (too_many_samples) return;
    set_or_mark_mixed(codec, found.codec.empty() ? codec_by_name : found.codec);
    if (samples.empty()) array = found.array;
    holds_statistics = found.holds_statistics && samples.empty();
    add_left_out(left_out_arrays, found.arrays_left_out);
    add_left_out(left_out_files, found.files_left_out);
    if (found.equal_arrays.count > 0) equal_arrays = found.equal_arrays;
    samples.push_back({.offset = found.placement.offset,
                       .length = found.placement.length,
                       .label = labels.number_of(found.label_name)});
    if (!found.form) return;
    if (forms.empty() || forms.back() != found.form) forms.push_back(found.form);
    samples.back().form = uint32_t(forms.size());
    extents.resize(samples.size());
    extents.back() = found.extent;
  });
  if (done.ok() && too_many_samples)
    done = make_error(Errc::unsupported, "'{}': more than {} samples in one object: split it", entry.name,
                      kMostSamplesPerObject);
  if (done.ok() || !is_content_error(done.error())) return done;
  content_error = std::move(done).error();
  if (content_error->code == Errc::corrupt || content_error->code == Errc::truncated)
    if (std::string text = describe_other_content(backend, entry, scan_format.name); !text.empty())
      content_error->what = std::move(text);
  samples = {};
  forms = {};
  extents = {};
  return success();
}

}  // namespace penstock
