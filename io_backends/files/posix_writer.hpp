// Writes an object into a folder of the operating system. Readers see all of it or nothing.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "io_backends/backend/backend.hpp"
#include "io_backends/backend/sharded_counter.hpp"
#include "io_backends/core/system/fd.hpp"
#include "io_backends/files/posix_root.hpp"

namespace penstock {

// Writes through the page cache. DirectWriter (direct_writer.cpp) derives from it and bypasses the page
// cache.
class PosixWriter : public Writer {
 public:
  PosixWriter(PosixRoot& folder, MovedCounter& moved, std::string_view name)
      : folder_(folder), moved_(moved), name_(name) {}
  PosixWriter(const PosixWriter&) = delete;
  PosixWriter& operator=(const PosixWriter&) = delete;
  ~PosixWriter() override { discard(); }

  // Makes the file of the object. It is called once, before any other function. If `bytes_hint` is at least 1
  // MiB, it reserves that space on the disk (not on tmpfs), so that the file is contiguous. After an error
  // the caller destroys the writer.
  Result<void> begin(uint64_t bytes_hint);
  Result<void> append(std::span<const std::byte> bytes) override;
  Result<void> append(std::span<const std::span<const std::byte>> pieces) override;
  Result<void> write_at(uint64_t offset, std::span<const std::byte> bytes) override;
  Result<void> publish(Durability wanted, IfExists if_exists) override;

 protected:
  // Opens fd_. The file has no name yet, or a temporary one.
  virtual Result<void> open_file() { return create_file(0); }
  Result<void> create_file(int more_flags);
  // Returns an error if a call has failed or publish() was called before.
  Result<void> check_unfinished() const;
  // Writes bytes until all are written, or an error or a full device ends it. Counts the written bytes.
  FullIo write_some(uint64_t offset, std::span<const std::byte> bytes);
  Result<void> write_all(uint64_t offset, std::span<const std::byte> bytes);
  // Removes an unpublished file.
  void discard();

  Error error(int sys_errno, std::string_view operation) const {
    return folder_.error(sys_errno, operation, name_);
  }
  Result<void> fail(Error failure) {
    finished_ = true;
    return failure;
  }

  PosixRoot& folder_;
  MovedCounter& moved_;
  const std::string name_;
  Fd fd_;
  uint64_t position_ = 0;  // offset of the next append()

 private:
  Result<void> finish_bytes(Durability wanted);
  Result<void> give_name(IfExists if_exists);
  Result<void> link_nameless(const std::string& to);
  Result<void> rename_and_replace(const std::string& from);
  Result<void> rename_if_free(const std::string& from);
  void start_write_back();

  int root_fd_ = -1;            // descriptor of the root folder (folder_)
  std::string temporary_name_;  // "" if the file is nameless
  uint64_t written_end_ = 0;
  uint64_t reserved_bytes_ = 0;
  uint64_t write_back_end_ = 0;  // write-back to the device has been started up to here
  bool finished_ = false;        // a call has failed, or publish() was called
};

}  // namespace penstock
