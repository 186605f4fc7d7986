#include "miniapps/pipeline/transform.hpp"

namespace penstock {
namespace {

class AsStored final : public Treatment {
 public:
  std::size_t slot_bytes() const override { return 0; }
  std::string_view layout() const override { return "as stored"; }
  std::span<const std::string_view> stages() const override { return {}; }
  Result<std::unique_ptr<SampleTransform>> transform() const override {
    return std::unique_ptr<SampleTransform>();
  }
};

}  // namespace

std::unique_ptr<Treatment> leave_as_stored() {
  return std::make_unique<AsStored>();
}

}  // namespace penstock
