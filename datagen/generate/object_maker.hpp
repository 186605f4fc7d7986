// Makes the objects of a data set one after the other: writes a recipe's samples in a format to a back end.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "datagen/format/format.hpp"
#include "datagen/generate/generate_state.hpp"
#include "datagen/generate/generation.hpp"
#include "datagen/recipe/recipe.hpp"
#include "io_backends/backend/backend.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// A function that decides whether a new object appears, like Approval (format.hpp). It also gets the samples
// of the object and their labels.
using SamplesApproval = std::function<Result<void>(
    const PublishedObject& written, std::span<const JournalSample>, std::span<const uint32_t> labels)>;

// What all makers of a data set have in common. A maker keeps references to it, so all of it must outlive the
// maker.
struct MakerSetup {
  const Generation& generation;
  Backend& backend;
  Durability durability;
  bool may_replace;  // true if objects of an earlier run may exist; they are replaced
  const std::vector<std::string>& label_names;
};

// Makes one object after another. Only one thread may use it.
class ObjectMaker {
 public:
  explicit ObjectMaker(const MakerSetup& setup) : setup_(setup) {}

  std::string name(uint64_t object);
  uint32_t label(uint64_t sample) { return plan(sample).label; }

  // Makes an object, which appears complete or not at all. Appends its samples to `rows`, and replaces the
  // content of `labels` by the samples' labels. After a failure, `rows` is as before.
  Result<PublishedObject> make(uint64_t object, std::vector<JournalSample>& rows,
                               std::vector<uint32_t>& labels, const SamplesApproval& approve = {});

 private:
  const SamplePlan& plan(uint64_t index);
  Result<PublishedObject> fill(uint64_t object, ObjectWriter& writer, std::vector<JournalSample>& rows,
                               std::vector<uint32_t>& labels, const SamplesApproval& approve);

  const MakerSetup setup_;
  std::unique_ptr<SampleMaker> maker_;
  SamplePlan last_plan_;
  uint64_t planned_index_ = UINT64_MAX;  // index of the sample that last_plan_ describes
  std::vector<FieldBytes> fields_;
};

// The name of a companion (recipe.hpp), which is an object without samples, such as "stats.h5". The name does
// not depend on folders or on the number of samples per object, so that programs find it.
std::string companion_name(const Format& format, const Companion& companion);

// Writes a companion and replaces an existing one.
Result<PublishedObject> write_companion(const Format& format, Backend& backend, const Companion& companion,
                                        Durability durability, const Approval& approve = {});

}  // namespace penstock
