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

// A function that decides whether a new object may appear, like Approval (format.hpp). In addition, it gets
// the object's samples and their labels.
using SamplesApproval = std::function<Result<void>(
    const PublishedObject& written, std::span<const JournalSample>, std::span<const uint32_t> labels)>;

// What all ObjectMakers of a data set have in common. An ObjectMaker keeps the references, so what they refer
// to must outlive the ObjectMaker.
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
  // content of `labels` by their labels. After a failure, `rows` is as before.
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

// The name of a companion, such as "stats.h5". A companion (recipe.hpp) is an object without samples.
// Programs look for it by this name, so the name does not depend on folders or on the number of samples per
// object.
std::string companion_name(const Format& format, const Companion& companion);

// Writes a companion. Replaces the companion of an earlier run, if there is one.
Result<PublishedObject> write_companion(const Format& format, Backend& backend, const Companion& companion,
                                        Durability durability, const Approval& approve = {});

}  // namespace penstock
