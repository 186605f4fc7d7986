#include "datagen/reading/sampler.hpp"

#include <algorithm>

#include "io_backends/core/options.hpp"
#include "io_backends/core/units.hpp"

namespace penstock {
namespace {

constexpr std::string_view kBufferName = "buffer";

Result<Shuffle> parse_buffer(std::string_view text) {
  const auto shuffle_error = [&](const std::string& why) {
    return make_error(Errc::invalid_argument, "shuffle '" + std::string(text) + "': " + why +
                                                  "; write buffer:1000 for a buffer of 1000 samples");
  };
  if (text == kBufferName) return shuffle_error("the number of samples is missing");
  const Result<uint64_t> entries = parse_count(text.substr(kBufferName.size() + 1));
  if (!entries.ok()) return shuffle_error(entries.error().what);
  if (*entries == 0) return shuffle_error("a buffer needs at least one sample");
  return Shuffle::buffer(*entries);
}

}  // namespace

Result<Shuffle> parse_shuffle(std::string_view text) {
  if (text == "none") return Shuffle::none;
  if (text == "local") return Shuffle::local;
  if (text == "global") return Shuffle::global;
  if (text.substr(0, text.find(':')) == kBufferName) return parse_buffer(text);
  return unknown_name("shuffle", text, {"none", "local", "buffer:N", "global"});
}

std::string shuffle_text(const Shuffle& shuffle) {
  constexpr std::string_view kNames[] = {"none", "local", kBufferName, "global"};
  std::string text(kNames[size_t(shuffle.kind)]);
  if (shuffle.kind == Shuffle::Kind::buffer) text += ":" + std::to_string(shuffle.buffer_entries);
  return text;
}

uint64_t EpochOrder::next() {
  const uint64_t position = position_++;
  if (draws_) return from_buffer(position);
  const uint64_t i = unshuffled(position);
  return part_begin_ + (permutation_ ? permutation_->at(i) : i);
}

void EpochOrder::skip(uint64_t count) {
  count = std::min(count, left());
  if (!draws_) {
    position_ += count;
    return;
  }
  for (; count > 0; --count) static_cast<void>(next());
}

uint64_t EpochOrder::from_buffer(uint64_t position) {
  uint64_t& entry = buffer_[size_t(draws_->below(position, buffer_.size()))];
  const uint64_t index = entry;
  if (buffered_count_ < size_) {
    entry = unshuffled(buffered_count_++);
  } else {
    entry = buffer_.back();
    buffer_.pop_back();
  }
  return index;
}

Sampler::Sampler(uint64_t samples, Shuffle shuffle, uint64_t seed, int rank, int ranks)
    : samples_(samples),
      per_epoch_(samples / uint64_t(ranks)),
      shuffle_(shuffle),
      seed_(seed),
      rank_(uint64_t(rank)),
      ranks_(uint64_t(ranks)) {}

EpochOrder Sampler::epoch(uint64_t number, uint64_t used) const {
  const RandomStream seeds(seed_, "train.order");
  used = std::min(used, samples_);
  // With these kinds of shuffle, all ranks share one order, and each rank takes every ranks_-th sample of it.
  // So any number of ranks can divide the samples after the first `used` among themselves.
  const bool shared_order = shuffle_.kind == Shuffle::Kind::none || shuffle_.kind == Shuffle::Kind::global;
  EpochOrder order;
  order.size_ = shared_order ? (samples_ - used) / ranks_ : per_epoch_;
  order.first_position_ = shared_order ? used + rank_ : rank_;
  order.stride_ = ranks_;
  switch (shuffle_.kind) {
    case Shuffle::Kind::none:
      break;
    case Shuffle::Kind::local:
      order.first_position_ = 0;
      order.stride_ = 1;
      order.part_begin_ = rank_ * per_epoch_;
      if (per_epoch_ > 0) order.permutation_.emplace(per_epoch_, seeds.substream(rank_ + 1).bits(number));
      break;
    case Shuffle::Kind::buffer:
      order.draws_ = RandomStream(seed_, "train.buffer").substream(rank_).substream(number);
      order.buffered_count_ = std::min(shuffle_.buffer_entries, per_epoch_);
      order.buffer_.reserve(size_t(order.buffered_count_));
      for (uint64_t i = 0; i < order.buffered_count_; ++i) order.buffer_.push_back(order.unshuffled(i));
      break;
    case Shuffle::Kind::global:
      if (samples_ > 0) order.permutation_.emplace(samples_, seeds.bits(number));
      break;
  }
  if (!shared_order) order.skip(used / ranks_);
  return order;
}

}  // namespace penstock
