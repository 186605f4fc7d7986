// Fuzz target: the input is used as a staging plan, and as the state that an apply left on the fast tier.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "datagen/staging/staged_state.hpp"
#include "datagen/staging/staging_plan.hpp"

namespace penstock {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void check_refusal(const Error& error) {
  require(error.code == Errc::corrupt || error.code == Errc::unsupported);
  require(!error.what.empty());
}

void read_plan(std::string_view text) {
  const auto plan = parse_staging_plan(text, "input");
  if (!plan.ok()) return check_refusal(plan.error());
  const auto reparsed = parse_staging_plan(staging_plan_text(*plan), "again");
  require(reparsed.ok() && reparsed->files == plan->files && reparsed->should_stage == plan->should_stage);
}

void read_state(std::string_view text) {
  const auto state = parse_staged_state(text, "input");
  if (!state.ok()) return check_refusal(state.error());
  const auto reparsed = parse_staged_state(staged_state_text(*state), "again");
  require(reparsed.ok() && *reparsed == *state);
}

}  // namespace
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  penstock::read_plan(text);
  penstock::read_state(text);
  return 0;
}
