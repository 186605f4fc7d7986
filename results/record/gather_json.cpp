// Ranks: gather_json() and gather_ranks() are collective. One thread of each rank calls them.
// Memory: everything allocates. If rank 0 throws before the broadcast, the other ranks wait for ever.
// Ctrl-C: it ends no call early. If one rank received the signal, gather_json() tells all ranks of it.
#include "results/record/gather_json.hpp"

#include <cstdint>
#include <span>
#include <string>

#include "io_backends/core/system/interrupt.hpp"

namespace penstock {
namespace {

int first_signal(const std::vector<int>& signals) {
  for (const int signal : signals)
    if (signal != 0) return signal;
  return 0;
}

}  // namespace

Result<GatheredJson> gather_json(Communicator& ranks, const Json& mine,
                                 const std::function<Json(const std::vector<Json>&)>& join) {
  // Each rank sends its JSON together with the signal that it received, if any. Of these signals, the answer
  // has that of the lowest rank. So after this call every rank knows of a signal, and all ranks can stop
  // together.
  const std::vector<uint8_t> bytes = Json::to_cbor(Json::array({interrupt_signal(), mine}));
  PENSTOCK_ASSIGN(const auto gathered, ranks.gather(std::as_bytes(std::span(bytes))));
  std::vector<std::byte> answer;
  if (ranks.root()) {
    std::vector<Json> rank_jsons;
    std::vector<int> signals;
    for (const std::vector<std::byte>& of_rank : gathered) {
      Json message = Json::from_cbor(of_rank);
      signals.push_back(message[0].get<int>());
      rank_jsons.push_back(std::move(message[1]));
    }
    const std::vector<uint8_t> joined = Json::to_cbor(Json::array({first_signal(signals), join(rank_jsons)}));
    const auto answer_bytes = std::as_bytes(std::span(joined));
    answer.assign(answer_bytes.begin(), answer_bytes.end());
  }
  PENSTOCK_TRY(ranks.broadcast(answer));
  Json message = Json::from_cbor(answer);
  GatheredJson result{std::move(message[1]), message[0].get<int>()};
  // A signal reached another rank, but not this one: make interrupted() true here, too.
  if (result.signal != 0 && !interrupted()) simulate_interrupt(result.signal);
  return result;
}

Result<Json> gather_ranks(Communicator& ranks, const Json& host, const Json& before) {
  PENSTOCK_ASSIGN(const Communicator::ClockOffset clock, ranks.clock_offset());
  const Json mine{{"rank", ranks.rank()},
                  {"host", host},
                  {"rank_on_node", ranks.rank_on_node()},
                  {"clock", {{"offset_ns", clock.offset_ns}, {"error_ns", clock.error_ns}}}};
  // Rank 0 gets one entry from each rank and returns all of them. On the other ranks `gathered` is empty, so
  // they return [].
  const std::vector<uint8_t> bytes = Json::to_cbor(mine);
  PENSTOCK_ASSIGN(const auto gathered, ranks.gather(std::as_bytes(std::span(bytes))));
  Json rows = Json::array();
  for (const std::vector<std::byte>& of_rank : gathered) {
    Json rank = Json::from_cbor(of_rank);
    Json clocks = rows.size() < before.size() ? before[rows.size()]["clock"] : Json::array();
    clocks.push_back(std::move(rank["clock"]));
    rank["clock"] = std::move(clocks);
    rows.push_back(std::move(rank));
  }
  return rows;
}

Json error_json(const Error& error) {
  return {{"code", int(error.code)}, {"errno", error.sys_errno}, {"what", error.what}};
}

Error error_from_json(const Json& json) {
  return {static_cast<Errc>(json["code"].get<int>()), json["errno"].get<int>(),
          json["what"].get<std::string>()};
}

Json number_json(const std::optional<double>& number) {
  return number ? Json(*number) : Json();
}

std::optional<double> number_from_json(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional(json.get<double>());
}

}  // namespace penstock
