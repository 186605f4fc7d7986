#include "datagen/cache/prepare_together.hpp"

#include <algorithm>
#include <vector>

#include "io_backends/core/system/interrupt.hpp"
#include "results/record/gather_json.hpp"

namespace penstock {
namespace {

Json packed(const CacheOutcome& outcome) {
  const CacheState& state = outcome.state;
  return {{"client_data", state.client_data},
          {"client_metadata", state.client_metadata},
          {"server", state.server},
          {"host", state.host},
          {"method", state.method},
          {"before", packed_number(state.resident_fraction_before)},
          {"after", packed_number(state.resident_fraction_after)},
          {"verdict", static_cast<int>(outcome.verdict)},
          {"reason", outcome.reason}};
}

CacheOutcome parse_outcome(const Json& json) {
  CacheOutcome outcome;
  json["client_data"].get_to(outcome.state.client_data);
  json["client_metadata"].get_to(outcome.state.client_metadata);
  json["server"].get_to(outcome.state.server);
  json["host"].get_to(outcome.state.host);
  json["method"].get_to(outcome.state.method);
  outcome.state.resident_fraction_before = number_of(json["before"]);
  outcome.state.resident_fraction_after = number_of(json["after"]);
  outcome.verdict = static_cast<Verdict>(json["verdict"].get<int>());
  json["reason"].get_to(outcome.reason);
  return outcome;
}

Json joined(const std::vector<Json>& each) {
  std::optional<CacheOutcome> all;
  for (const Json& one : each) {
    if (one.contains("error")) return {{"error", one["error"]}};
    if (!one.contains("outcome")) continue;
    const CacheOutcome node = parse_outcome(one["outcome"]);
    if (!all) {
      all = node;
      continue;
    }
    blend(all->state, node.state);
    judge(all->verdict, all->reason, node.verdict, node.reason);
  }
  return {{"outcome", packed(all.value_or(CacheOutcome{}))}};
}

}  // namespace

PreparedTogether prepare_together(Communicator& ranks, CacheControl& cache, WhoPrepares who) {
  if (ranks.size() == 1) return {cache.prepare(), interrupt_signal()};
  Json mine = Json::object();
  if (who == WhoPrepares::every_rank || ranks.rank_on_node() == 0) {
    const Result<CacheOutcome> outcome = cache.prepare();
    mine = outcome.ok() ? Json{{"outcome", packed(*outcome)}} : Json{{"error", packed(outcome.error())}};
  }
  const Result<GatheredJson> said = gather_json(ranks, mine, joined);
  if (!said.ok()) return {said.error()};
  if (said->json.contains("error")) return {error_of(said->json["error"]), said->signal};
  return {parse_outcome(said->json["outcome"]), said->signal};
}

void blend(CacheState& state, const CacheState& other) {
  if (other.client_data != state.client_data)
    state.client_data = other.client_data == "unverified" ? "unverified" : "unknown";
  if (other.client_metadata != state.client_metadata)
    state.client_metadata =
        other.client_metadata == "warm" || state.client_metadata == "warm" ? "warm" : "unknown";
  if (!other.resident_fraction_before) {
    state.resident_fraction_before.reset();
  } else if (state.resident_fraction_before) {
    const double a = *state.resident_fraction_before;
    const double b = *other.resident_fraction_before;
    state.resident_fraction_before = state.client_data == "warm" ? std::min(a, b) : std::max(a, b);
  }
}

}  // namespace penstock
