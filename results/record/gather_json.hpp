// What the ranks of a job tell each other beyond numbers: JSON from each to rank 0, and one answer to all.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "io_backends/core/ranks/communicator.hpp"
#include "results/record/record.hpp"

namespace penstock {

struct GatheredJson {
  Json json;
  int signal = 0;  // the first that came to one of the ranks; 0 for none
};

// Collective: `join` makes one of what each rank says, in rank order, on rank 0; every rank gets that. A
// signal that has come to one rank has come to all when this returns: interrupted() says so on each.
Result<GatheredJson> gather_json(Communicator& ranks, const Json& mine,
                                 const std::function<Json(const std::vector<Json>&)>& join);

// Collective: on rank 0 a row for each rank with its number, its `host` and what its clock lies apart from
// rank 0's; of `before`, the rows of an earlier call, each has the clocks before its own. [] on the other
// ranks.
Result<Json> gather_ranks(Communicator& ranks, const Json& host, const Json& before);

Json packed(const Error& error);
Error error_of(const Json& json);

// null for none.
Json packed_number(const std::optional<double>& number);
std::optional<double> number_of(const Json& json);

}  // namespace penstock
