#include "datagen/reading/sampler.hpp"

#include <algorithm>

#include "io_backends/core/options.hpp"
#include "io_backends/core/units.hpp"

namespace penstock {
namespace {

constexpr std::string_view kBuffer = "buffer";

Result<Shuffle> parse_buffer(std::string_view text) {
  const auto wrong = [&](const std::string& why) {
    return make_error(Errc::invalid_argument, "shuffle '" + std::string(text) + "': " + why +
                                                  "; write buffer:1000 for a buffer of 1000 samples");
  };
  if (text == kBuffer) return wrong("of how many samples?");
  const Result<std::uint64_t> places = parse_count(text.substr(kBuffer.size() + 1));
  if (!places.ok()) return wrong(places.error().what);
  if (*places == 0) return wrong("a buffer needs a place at least");
  return Shuffle::buffer(*places);
}

}  // namespace

Result<Shuffle> parse_shuffle(std::string_view text) {
  if (text == "none") return Shuffle::none;
  if (text == "local") return Shuffle::local;
  if (text == "global") return Shuffle::global;
  if (text.substr(0, text.find(':')) == kBuffer) return parse_buffer(text);
  return unknown_name("shuffle", text, {"none", "local", "buffer:N", "global"});
}

std::string shuffle_text(const Shuffle& shuffle) {
  constexpr std::string_view kNames[] = {"none", "local", kBuffer, "global"};
  std::string text(kNames[static_cast<std::size_t>(shuffle.kind)]);
  if (shuffle.kind == Shuffle::Kind::buffer) text += ":" + std::to_string(shuffle.buffer_entries);
  return text;
}

std::uint64_t EpochOrder::next() {
  const std::uint64_t position = position_++;
  if (draws_) return from_buffer(position);
  const std::uint64_t i = unshuffled(position);
  return offset_ + (permutation_ ? permutation_->at(i) : i);
}

void EpochOrder::skip(std::uint64_t count) {
  count = std::min(count, left());
  if (!draws_) {
    position_ += count;
    return;
  }
  for (; count > 0; --count) static_cast<void>(next());
}

std::uint64_t EpochOrder::from_buffer(std::uint64_t position) {
  std::uint64_t& place = buffer_[static_cast<std::size_t>(draws_->below(position, buffer_.size()))];
  const std::uint64_t index = place;
  if (buffered_ < size_) {
    place = unshuffled(buffered_++);
  } else {
    place = buffer_.back();
    buffer_.pop_back();
  }
  return index;
}

Sampler::Sampler(std::uint64_t samples, Shuffle shuffle, std::uint64_t seed, int rank, int ranks)
    : samples_(samples),
      per_epoch_(samples / static_cast<std::uint64_t>(ranks)),
      shuffle_(shuffle),
      seed_(seed),
      rank_(static_cast<std::uint64_t>(rank)),
      ranks_(static_cast<std::uint64_t>(ranks)) {}

EpochOrder Sampler::epoch(std::uint64_t number, std::uint64_t used) const {
  const RandomStream seeds(seed_, "train.order");
  used = std::min(used, samples_);
  // All ranks take samples in turn from one order. So the samples after `used` can be divided among any
  // number of ranks.
  const bool shared = shuffle_.kind == Shuffle::Kind::none || shuffle_.kind == Shuffle::Kind::global;
  EpochOrder order;
  order.size_ = shared ? (samples_ - used) / ranks_ : per_epoch_;
  order.first_ = shared ? used + rank_ : rank_;
  order.stride_ = ranks_;
  switch (shuffle_.kind) {
    case Shuffle::Kind::none:
      break;
    case Shuffle::Kind::local:
      order.first_ = 0;
      order.stride_ = 1;
      order.offset_ = rank_ * per_epoch_;
      if (per_epoch_ > 0) order.permutation_.emplace(per_epoch_, seeds.substream(rank_ + 1).bits(number));
      break;
    case Shuffle::Kind::buffer:
      order.draws_ = RandomStream(seed_, "train.buffer").substream(rank_).substream(number);
      order.buffered_ = std::min(shuffle_.buffer_entries, per_epoch_);
      order.buffer_.reserve(static_cast<std::size_t>(order.buffered_));
      for (std::uint64_t i = 0; i < order.buffered_; ++i) order.buffer_.push_back(order.unshuffled(i));
      break;
    case Shuffle::Kind::global:
      if (samples_ > 0) order.permutation_.emplace(samples_, seeds.bits(number));
      break;
  }
  if (!shared) order.skip(used / ranks_);
  return order;
}

}  // namespace penstock
