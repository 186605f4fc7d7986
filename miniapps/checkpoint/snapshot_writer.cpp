#include "miniapps/checkpoint/snapshot_writer.hpp"

#include <cstring>
#include <exception>
#include <new>
#include <span>
#include <string>
#include <utility>

#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/units.hpp"

namespace penstock {

SnapshotWriter::SnapshotWriter(Write write, Failed failed)
    : write_(std::move(write)), failed_(std::move(failed)), thread_([this] { work(); }) {}

SnapshotWriter::~SnapshotWriter() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  over_ = true;
  changed_.notify_all();
}

Result<void> SnapshotWriter::make_room(const SaveWork& work) {
  std::size_t bytes = 0;
  for (const FileView& file : work.files) bytes += static_cast<std::size_t>(whole_blocks(file.bytes.size()));
  try {
    memory_.grow(bytes);
  } catch (const std::bad_alloc&) {
    return make_error(Errc::exhausted, "no memory for a snapshot of " + format_size(bytes));
  }
  return success();
}

void SnapshotWriter::take(SaveWork work) {
  std::size_t at = 0;
  for (FileView& file : work.files) {
    std::memcpy(memory_.data() + at, file.bytes.data(), file.bytes.size());
    file.bytes = std::span(memory_.data() + at, file.bytes.size());
    at += static_cast<std::size_t>(whole_blocks(file.bytes.size()));
  }
  id_ = work.id;
  work_ = std::move(work);
  taken_ = true;
  given_up_ = false;
  const std::lock_guard lock(mutex_);
  state_ = State::busy;
  changed_.notify_all();
}

SnapshotWriter::State SnapshotWriter::look(std::chrono::steady_clock::time_point until) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, until, [&] { return state_ != State::busy; });
  return state_;
}

void SnapshotWriter::abandon() {
  work_.staged.reset();
  const std::lock_guard lock(mutex_);
  state_ = State::free;
}

void SnapshotWriter::work() noexcept {
  const WorkOn through_signals(over_);
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stop_ || state_ == State::busy; });
      if (state_ != State::busy) return;
    }
    State ended = State::free;
    try {
      if (Result<void> written = write_(work_); !written.ok()) {
        ended = written.error().code == Errc::no_space ? State::full : State::failed;
        if (ended == State::failed) failed_(std::move(written).error());
      }
    } catch (const std::exception& error) {
      ended = State::failed;
      failed_(
          make_error(Errc::internal, "the thread that writes snapshots died: " + std::string(error.what())));
    }
    const std::lock_guard lock(mutex_);
    state_ = ended;
    changed_.notify_all();
    if (stop_) return;
  }
}

}  // namespace penstock
