// Makes the objects of a data set, one after the other: a recipe's samples through a format into a back end.
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

// As Approval, with the object's samples and their labels.
using SamplesApproval = std::function<Result<void>(
    const PublishedObject& written, std::span<const JournalSample>, std::span<const std::uint32_t> labels)>;

// What all makers of a data set share. Borrowed.
struct Making {
  const Generation& generation;
  Backend& backend;
  Durability durability;
  bool replaces;  // objects of before may be in the way
  const std::vector<std::string>& label_names;
};

// One thread.
class ObjectMaker {
 public:
  explicit ObjectMaker(const Making& making) : making_(making) {}

  std::string name(std::uint64_t object);
  std::uint32_t label(std::uint64_t sample) { return plan(sample).label; }

  // The object appears whole or not at all. Its samples come behind those that are in `rows`, their labels
  // replace what is in `labels`; a failure leaves `rows` as it was.
  Result<PublishedObject> make(std::uint64_t object, std::vector<JournalSample>& rows,
                               std::vector<std::uint32_t>& labels, const SamplesApproval& approve = {});

 private:
  const SamplePlan& plan(std::uint64_t index);
  Result<PublishedObject> fill(std::uint64_t object, ObjectWriter& writer, std::vector<JournalSample>& rows,
                               std::vector<std::uint32_t>& labels, const SamplesApproval& approve);

  const Making making_;
  std::unique_ptr<SampleMaker> maker_;
  SamplePlan plan_;
  std::uint64_t planned_ = UINT64_MAX;  // the sample that plan_ is of
  std::vector<FieldBytes> fields_;
};

// Of an object that holds no samples (recipe.hpp says what a companion is): "stats.h5", however many samples
// an object has and whatever folders they are in: a program finds it by its name.
std::string companion_name(const Format& format, const Companion& companion);

// Writes it, in place of one that is there.
Result<PublishedObject> write_companion(const Format& format, Backend& backend, const Companion& companion,
                                        Durability durability, const Approval& approve = {});

}  // namespace penstock
