// For the tests of training: input without a pipeline.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "miniapps/pipeline/batch.hpp"
#include "miniapps/pipeline/stage.hpp"

namespace penstock {

// That many batches out of nothing, each of three samples with 60 bytes, and then the end or an error.
class ScriptedInput final : public Stage<const Batch*> {
 public:
  explicit ScriptedInput(int batches, std::optional<Error> then = std::nullopt)
      : left_(batches), then_(std::move(then)) {
    batch_.index = {1, 2, 3};
    batch_.length = {10, 20, 30};
  }
  Result<const Batch*> next() override {
    if (left_-- > 0) return static_cast<const Batch*>(&batch_);
    if (then_) return *then_;
    return static_cast<const Batch*>(nullptr);
  }
  std::vector<StageTally> times() const override { return {}; }

 private:
  int left_;
  std::optional<Error> then_;
  Batch batch_;
};

}  // namespace penstock
