// Finds the samples of a corpus that a training program could not use: those that cannot be read, unpacked or
// decoded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "datagen/manifest/manifest.hpp"
#include "io_backends/backend/backend.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// The list of bad samples, as text: a line for each with the name of its object, its offset there and the
// reason, separated by tabs. Only one thread at a time may use it.
class BadList {
 public:
  uint64_t samples() const { return samples_; }  // number of bad samples that the manifest lists
  // Number of objects that the scan could not read. The number of their samples is unknown.
  uint64_t objects() const { return objects_; }
  // Number of samples that this build or machine cannot check, for example PNG in a build without libpng.
  // They are not in the list. first_unchecked() says why for the first of them.
  uint64_t unchecked() const { return unchecked_; }
  const std::string& first_unchecked() const { return first_unchecked_; }
  const std::string& text() const { return text_; }

  void add_object(std::string_view name, const Error& why);
  // Reads every sample of the manifest with `threads` threads, undoes its form and wrapping, and decodes it
  // if it is a picture (is_picture() in content.hpp). Adds the bad ones in the order of the manifest. A
  // picture without bytes is bad; any other sample without bytes is not. Samples of more than
  // kMostUnpackedBytes are only read. Memory: for each thread the largest sample and one picture. Errors:
  // those that do not concern an object (concerns_object()), `exhausted`, and `interrupted` after Ctrl-C.
  Result<void> add_samples(Backend& backend, const Manifest& manifest, unsigned threads, bool progress);
  // "bad  3 of 44 samples; listed in 'bad.tsv'" with a final newline. `samples`: how many the manifest lists.
  std::string summary(uint64_t samples, std::string_view file) const;
  // Refuses a file that write() would replace although it is neither empty nor such a list: devices and
  // links, too.
  static Result<void> check_file(const std::string& file);
  // Writes the list to a file, replacing it. It is complete, or unchanged if that fails.
  Result<void> write(const std::string& file) const;

 private:
  void add(std::string_view object, uint64_t offset, std::string_view reason);

  uint64_t samples_ = 0;
  uint64_t objects_ = 0;
  uint64_t unchecked_ = 0;
  std::string first_unchecked_;
  std::string text_;
};

}  // namespace penstock
