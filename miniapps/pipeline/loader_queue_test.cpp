// Tests how the loader uses the queues of a back end.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "miniapps/pipeline/in_place.hpp"
#include "miniapps/pipeline/loader_testing.hpp"

namespace penstock {
namespace {

// Records which threads make, use and destroy its queues, and how many operations are in flight.
class WatchedBackend final : public Backend {
 public:
  explicit WatchedBackend(ScriptedBackend& inner) : inner_(inner) { caps_.async = true; }
  const Caps& caps() const override { return caps_; }
  Result<std::unique_ptr<Reader>> open(std::string_view name) override { return inner_.open(name); }
  Result<std::unique_ptr<Writer>> create(std::string_view name, uint64_t bytes) override {
    return inner_.create(name, bytes);
  }
  Result<std::unique_ptr<Queue>> queue(size_t depth) override {
    return std::unique_ptr<Queue>(std::make_unique<Watched>(*this, depth));
  }
  Namespace& names() override { return inner_.names(); }
  MovedBytes moved_bytes() const override { return inner_.moved_bytes(); }

  void saw(size_t started) {
    size_t before = most;
    while (before < started && !most.compare_exchange_weak(before, started)) {
    }
  }

  std::atomic<int> foreign{0};      // calls by another thread than the one that made the queue
  std::atomic<bool> broken{false};  // reap() returns nothing
  std::atomic<size_t> most{0};      // the most operations in flight

 private:
  class Watched final : public Queue {
   public:
    Watched(WatchedBackend& owner, size_t depth) : owner_(owner), depth_(depth) {}
    ~Watched() override { check(); }
    size_t submit(std::span<const Operation> operations, Start start) override {
      check();
      const size_t taken = std::min(operations.size(), depth_ - waiting_.size());
      waiting_.insert(waiting_.end(), operations.begin(), operations.begin() + ptrdiff_t(taken));
      if (start == Start::now) started_ = waiting_.size();
      owner_.saw(started_);
      return taken;
    }
    size_t reap(std::span<Completion> out, size_t) override {
      check();
      started_ = waiting_.size();
      owner_.saw(started_);
      if (owner_.broken) return 0;
      const size_t count = std::min(out.size(), (waiting_.size() + 1) / 2);
      for (size_t i = 0; i < count; ++i) out[i] = {waiting_[i].tag, perform(owner_.inner_, waiting_[i])};
      waiting_.erase(waiting_.begin(), waiting_.begin() + ptrdiff_t(count));
      started_ -= count;
      return count;
    }
    size_t in_flight() const override { return waiting_.size(); }

   private:
    void check() const {
      if (std::this_thread::get_id() != thread_) ++owner_.foreign;
    }
    WatchedBackend& owner_;
    const size_t depth_;
    const std::thread::id thread_ = std::this_thread::get_id();
    std::vector<Operation> waiting_;
    size_t started_ = 0;
  };

  ScriptedBackend& inner_;
  Caps caps_;
};

TEST(BatchLoader, AQueueBelongsToOneThreadFromBeginningToEnd) {
  for (const bool to_the_end : {true, false}) {
    Pipe pipe(400, 8, 4);
    WatchedBackend watched(pipe.scripted);
    pipe.backend = &watched;
    {
      const auto loader = pipe.start({0, 1}, 3, BadSample::fail, Shuffle::global, 12);
      ASSERT_TRUE(loader.ok());
      if (to_the_end) {
        EXPECT_EQ(drain(**loader, pipe.manifest).size(), 50U);
      } else {
        ASSERT_TRUE((*loader)->next().ok());
      }
    }
    EXPECT_EQ(watched.foreign, 0);
    EXPECT_GT(watched.most, 4U) << "several are on their way at a time";
  }
}

TEST(BatchLoader, StartsSubmittedReadsBeforeProcessingASample) {
  Pipe pipe(64, 8, 4);
  WatchedBackend watched(pipe.scripted);
  HeldObjects objects(watched, objects_to_hold(pipe.manifest, watched));
  const auto reader = SampleLoader::make(pipe.manifest, watched, objects, 8, false).value();
  uint64_t next = 0;
  for (; next < 8; ++next) reader->request({.index = next});
  ASSERT_TRUE(reader->next().outcome.ok());  // four operations have completed
  watched.most = 0;
  reader->request({.index = next++});
  ASSERT_TRUE(reader->next().outcome.ok());
  EXPECT_EQ(watched.most, 5U) << "it is on its way while the second of the four is worked on";
}

TEST(BatchLoader, ABrokenQueueEndsTheRun) {
  Pipe pipe(64, 8, 4);
  WatchedBackend watched(pipe.scripted);
  watched.broken = true;
  pipe.backend = &watched;
  const auto loader = pipe.start({0, 1}, 2, BadSample::skip, Shuffle::global, 5);
  ASSERT_TRUE(loader.ok());
  const Result<const Batch*> batch = (*loader)->next();
  ASSERT_FALSE(batch.ok());
  EXPECT_EQ(batch.error().code, Errc::internal);
}

}  // namespace
}  // namespace penstock
