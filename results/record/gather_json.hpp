// Exchanges JSON between the ranks of a job: each rank sends its JSON to rank 0, and all ranks get one
// answer. Every rank must make these calls, in the same order.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "io_backends/core/ranks/communicator.hpp"
#include "results/record/record.hpp"

namespace penstock {

struct GatheredJson {
  Json json;
  int signal = 0;  // a signal that a rank received (if several did: that of the lowest rank); 0: none
};

// Sends `mine` to rank 0. Rank 0 calls `join` with the JSON of all ranks in rank order, and every rank gets
// the result. If any rank received a signal, interrupted() is true on every rank afterwards. Collective.
Result<GatheredJson> gather_json(Communicator& ranks, const Json& mine,
                                 const std::function<Json(const std::vector<Json>&)>& join);

// Returns on rank 0 an array with an entry for each rank: its number, its `host`, its rank on the node, and
// the offset of its clock from rank 0's clock. On the other ranks it returns [].
// `before` is the result of an earlier call. Each new entry lists the clock offsets of `before` first, then
// the new offset. Collective.
Result<Json> gather_ranks(Communicator& ranks, const Json& host, const Json& before);

Json error_json(const Error& error);
Error error_from_json(const Json& json);

// The number as JSON; null if it is absent.
Json number_json(const std::optional<double>& number);
std::optional<double> number_from_json(const Json& json);

}  // namespace penstock
