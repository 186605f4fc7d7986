// The format of a session's file: its header, its blocks and the records that a watched process writes. The
// writer is the library inside other programs (profiling/interpose). The readers are the rest of Penstock.
// They share only this header, span_abi.h, process_abi.h and memory_fence.hpp.
//
// The three *_abi.h headers can be compiled as C11 and as C++. They include no other header of Penstock. All
// integers in them have a fixed size. Records have the same layout in memory and in files, in the byte order
// of the machine.
//
// The meaning of a value of an enum never changes; new values are added after the last. A reader skips spans
// whose component (span_abi.h) it does not know, and ignores `reserved` members.
#ifndef PENSTOCK_PROFILING_SESSION_ABI_H
#define PENSTOCK_PROFILING_SESSION_ABI_H

#include <stddef.h>
#include <stdint.h>

#include "profiling/process_abi.h"
#include "profiling/span_abi.h"

// --- A session is a folder of mode 0700 with files of mode 0600. A process begins a new file when it is
// forked and when it executes another program. Each window of a process has a file of its own. A file is a
// header followed by blocks. It is mapped while it is written, so nothing is lost even if the process is
// killed. docs/reference/session-format.md describes how to read it.

#define PENSTOCK_SESSION_MAGIC "PNSTKSES"  // 8 bytes, without the NUL
#define PENSTOCK_SESSION_VERSION 3
#define PENSTOCK_SESSION_BYTE_ORDER 0x01020304u
#define PENSTOCK_SESSION_SUFFIX ".session"  // file name: <pid>-<begin_monotonic_ns><suffix>

// The size of a block is a multiple of this number, and so is its distance from the header.
#define PENSTOCK_BLOCK_GRANULE 16384u
#define PENSTOCK_HEADER_BYTES 16384u

// The kernel's I/O counters of a process and of its reaped children (/proc/PID/io).
struct penstock_kernel_io {
  uint64_t rchar;
  uint64_t wchar;
  uint64_t syscr;
  uint64_t syscw;
  uint64_t read_bytes;
  uint64_t write_bytes;
};

// One moment on two clocks: `ticks` of the session's clock (enum penstock_clock), and CLOCK_MONOTONIC. With
// two such moments, any ticks can be converted to CLOCK_MONOTONIC.
struct penstock_moment {
  uint64_t ticks;
  int64_t monotonic_ns;
};

// A process that could not make its file, and why.
struct penstock_lost_child {
  uint32_t pid;     // 0: not known
  uint32_t failed;  // errno; 0: not known
};
#define PENSTOCK_LOST_CHILDREN 16

// The start of the file. A member is 0, or an empty text, if its value is not known. A text ends at its NUL,
// or else at the end of its member.
struct penstock_session_header {
  char magic[8];
  uint32_t version;
  uint32_t byte_order;    // PENSTOCK_SESSION_BYTE_ORDER in the writer's byte order
  uint32_t header_bytes;  // offset of the first block
  uint32_t granule;
  uint32_t pid;
  uint32_t parent_pid;
  uint32_t state;   // enum penstock_process_state
  uint32_t clock;   // enum penstock_clock
  uint32_t forked;  // 1 if the file began at a fork of a watched process, 0 if at an exec
  // Bit 0 says whether segments are recorded. Any process that may write to the file may change this bit.
  uint32_t control;
  uint64_t process_start;     // field 22 of /proc/PID/stat; it distinguishes two processes with the same pid
  int64_t begin_realtime_ns;  // CLOCK_REALTIME at `begin`
  struct penstock_moment begin;
  struct penstock_moment later[2];  // readings after `begin`; later[later_index] is the newest complete one
  uint32_t later_index;
  uint32_t kernel_end_known;  // 1 once kernel_end has been read
  uint64_t ticks_per_s;       // measured when recording first began; accurate to 0.1%
  int64_t end_monotonic_ns;   // 0 while the process runs, or if it was killed
  // The kernel's counters when this file began. After a fork they include no I/O of the program, only that of
  // this library.
  struct penstock_kernel_io kernel_begin;
  struct penstock_kernel_io kernel_end;  // the kernel's counters when they were last read
  uint64_t file_end;                     // offset after the last block
  uint64_t dropped_records;  // (thread, file) pairs that got no counters because there was no room
  // Operations that no counter includes, such as those of the pairs in `dropped_records`. They also include
  // the operations of a signal handler that interrupted its own thread inside the profiler, if these could
  // not be counted later.
  uint64_t dropped_operations;
  uint64_t dropped_segments;  // segments that found no room, or were replaced by newer ones
  uint64_t dropped_spans;
  uint64_t unnamed;  // operations on descriptors whose open was not seen and for which /proc had no name
  uint32_t rank;     // rank of the process in the launcher's job; 0 without a launcher
  uint32_t ranks;    // number of ranks in the job; 0 without a launcher
  // Bytes used in `command`. That member has the process's arguments, with a NUL after each. If they are
  // longer than the member, their end is missing.
  uint32_t command_bytes;
  uint32_t begun;  // enum penstock_start_reason
  char host[64];
  char executable[1024];
  char directory[1024];  // the working directory at `begin`
  char command[4096];
  uint64_t trace_limit;     // limit for the bytes of segments in this file; 0: no limit
  uint32_t inherited_from;  // pid of the process from whose file `control` was copied at a fork; 0: none
  uint32_t no_room;         // errno of the last failure to add a block to the file; 0: none failed
  // Forked children of this process that made calls but could not make a file of their own: they gave up the
  // rights to it, changed their root, or found no room. Each child adds itself here, in its parent's file.
  uint32_t lost_children;  // their number; the first PENSTOCK_LOST_CHILDREN of them are named in `lost`
  // 1: the process called a function after which it, or what it executes, may not be able to write to the
  // session (setuid(), chroot(), unshare(), ...); 2: it restricted its system calls as well (seccomp)
  uint32_t gave_up_rights;
  struct penstock_lost_child lost[PENSTOCK_LOST_CHILDREN];
  // Number of the PID namespace to which `pid` and the pids of events belong (inode of /proc/self/ns/pid).
  uint32_t pid_namespace;
  // The namespace of `parent_pid`. Another one than pid_namespace if this process is the first of its
  // namespace and was forked by a recorded process.
  uint32_t parent_namespace;
  uint32_t kernel_pid;             // field 1 of /proc/self/stat: the pid in the namespace of /proc
  uint32_t kernel_begin_is_known;  // 1: kernel_begin was read, or needs no reading; 2: it could not be read
  // The sums of kernel_read and kernel_written of all threads when the process itself read kernel_end.
  // Handlers of exit() and destructors may make calls after that, which these sums and kernel_end lack. Known
  // if counted_end_is_known is 1.
  uint64_t counted_end_read;
  uint64_t counted_end_written;
  uint32_t counted_end_is_known;
  uint32_t reserved_too;
};

enum penstock_block_kind {
  PENSTOCK_BLOCK_FREE = 0,      // a block without entries
  PENSTOCK_BLOCK_COUNTERS = 1,  // struct penstock_counters
  PENSTOCK_BLOCK_NAMES = 2,     // each a struct penstock_name followed by its text
  PENSTOCK_BLOCK_SEGMENTS = 3,  // struct penstock_segment
  PENSTOCK_BLOCK_SPANS = 4,     // struct penstock_span
  PENSTOCK_BLOCK_THREADS = 5,   // struct penstock_thread
  PENSTOCK_BLOCK_EVENTS = 6     // each a struct penstock_event followed by its text
};

#define PENSTOCK_BLOCK_MAGIC 0x4b4c4250u  // "PBLK" on a little-endian machine

// The first 64 bytes of each block. The block's entries follow without gaps.
struct penstock_block {
  uint32_t magic;
  uint16_t kind;
  uint16_t entry_bytes;  // size of each entry; 0 if entries differ in size
  uint64_t bytes;        // size of the block, including this header
  uint64_t used;         // bytes of complete entries after this header; increased after an entry is written
  // In a block of segments: how often the block was emptied to make room for newer segments. `used` is set to
  // 0 before this number increases.
  uint64_t renewed;
  uint64_t next;  // offset of the segment block that became full after this one; only the writer uses it
  uint64_t reserved[3];
};

enum penstock_layer {
  PENSTOCK_POSIX = 0,  // calls on descriptors
  PENSTOCK_STDIO = 1,  // streams (FILE): bytes that the program read or wrote through them
  PENSTOCK_RING = 2,   // io_uring and libaio
  PENSTOCK_MPIIO = 3,  // a layer above POSIX: the same bytes are counted in POSIX as well
  PENSTOCK_HDF5 = 4,   // a layer above POSIX or MPI-IO: the same bytes are counted in that layer as well
  PENSTOCK_LAYERS = 5
};

// Number of size ranges of reads and of writes: up to 100, 1 Ki, 10 Ki, 100 Ki, 1 Mi, 4 Mi, 10 Mi, 100 Mi,
// 1 Gi bytes, and more.
#define PENSTOCK_SIZE_BUCKETS 10
#define PENSTOCK_NEVER 0  // a value of ticks: the event has not happened

// Which struct an entry of counters is, and whether the same thread, file and layer have another entry that
// comes before or after it.
enum penstock_form {
  PENSTOCK_WHOLE = 1,              // struct penstock_counters
  PENSTOCK_CONTINUED = 2,          // struct penstock_brief; later operations are in another entry
  PENSTOCK_BRIEF = 3,              // struct penstock_brief
  PENSTOCK_WHOLE_CONTINUATION = 4  // struct penstock_counters; earlier reads are in another entry
};

// The operations of one thread on one file in one layer. There may be several entries of the same thread,
// file and layer; a reader adds them up.
// The rules of `sequential` and `consecutive` are Darshan's. A read is sequential if it begins after the last
// byte of the read before it. It is consecutive if it begins directly after that byte. If nothing has been
// read yet, byte 0 counts as that last byte.
struct penstock_counters {
  uint64_t file;  // key of the file: `file` of its struct penstock_name
  uint64_t name;  // offset of the struct penstock_name in this file; 0 if there was no room for the name
  uint32_t thread;
  uint16_t layer;    // enum penstock_layer
  uint8_t last_was;  // 1: the last operation was a read, 2: a write
  uint8_t form;      // enum penstock_form
  uint64_t bytes_read;
  uint64_t read_ticks;
  uint64_t meta_ticks;

  uint32_t reads;
  uint32_t sequential_reads;
  uint32_t consecutive_reads;
  uint32_t opens;
  uint32_t closes;
  uint32_t stats;
  uint32_t seeks;
  uint32_t syncs;
  uint32_t maps;
  uint32_t other;        // metadata operations without a counter of their own: access, rename, unlink, ...
  uint32_t failures;     // failed calls; no other counter includes them
  uint32_t descriptors;  // descriptors whose open was not seen, such as inherited ones
  uint32_t read_sizes[PENSTOCK_SIZE_BUCKETS];

  uint64_t last_read;  // offset of the last byte that was read
  // The largest size of the file that is known: from stat() and similar calls, or from the end of a read or
  // write.
  uint64_t size;
  uint64_t mapped_bytes;
  uint64_t first_ticks;  // start of the first operation
  uint64_t last_ticks;   // end of the last operation that was neither a read nor a write
  uint64_t first_read_ticks;
  uint64_t last_read_ticks;

  uint64_t bytes_written;
  uint64_t write_ticks;
  uint32_t writes;
  uint32_t sequential_writes;
  uint32_t consecutive_writes;
  uint32_t read_write_switches;
  uint32_t write_sizes[PENSTOCK_SIZE_BUCKETS];
  uint64_t last_written;  // offset of the last byte that was written
  uint64_t first_write_ticks;
  uint64_t last_write_ticks;
  // The largest value that last_read had before it became smaller; 0: it never did. So the highest byte that
  // was read is the larger one of the two. Older files lack these members (penstock_block.entry_bytes is
  // 288).
  uint64_t highest_read;
  uint64_t highest_written;  // the same of last_written
  uint64_t reserved[2];
};

// A shorter form of counters, for files that are only opened, inspected, read in a few pieces and closed. It
// is two cache lines long and has blocks of its own. If an operation has no counter here, or its counter
// would overflow, a whole entry (penstock_counters) begins.
struct __attribute__((may_alias)) penstock_brief {
  uint64_t file;  // the members up to meta_ticks are those of penstock_counters
  uint64_t name;
  uint32_t thread;
  uint16_t layer;
  uint8_t last_was;
  uint8_t form;
  uint64_t bytes_read;
  uint64_t read_ticks;
  uint64_t meta_ticks;

  uint64_t last_read;
  uint64_t size;
  uint64_t first_ticks;
  uint64_t last_ticks;
  uint64_t first_read_ticks;
  uint64_t last_read_ticks;
  uint8_t reads;
  uint8_t sequential_reads;
  uint8_t consecutive_reads;
  uint8_t opens;
  uint8_t closes;
  uint8_t stats;
  uint8_t seeks;
  uint8_t other;
  uint8_t read_sizes[PENSTOCK_SIZE_BUCKETS];
  uint16_t highest_read_upper;  // bits 32 to 47 of highest_read of penstock_counters
  uint32_t failures;
  uint32_t descriptors;
  uint32_t highest_read_lower;  // bits 0 to 31
};

enum penstock_file_kind {
  PENSTOCK_REGULAR = 0,  // a regular file, or a file of unknown kind
  PENSTOCK_DIRECTORY = 1,
  PENSTOCK_OTHER_FILE = 2,  // a pipe, a socket, a terminal, a device: not on a tier
};

// A file's absolute name, as the program gave it. `file` is the hash of the name, so it is the same in every
// process.
struct penstock_name {
  uint64_t file;    // XXH3_64bits of the text; 0: no name
  uint32_t length;  // bytes of the text after this struct, without NUL
  uint16_t kind;    // enum penstock_file_kind
  uint16_t reserved;
  // The text follows, then zeros up to a multiple of 8 bytes.
};

// One thread, from its first counted call to its end. The byte counts also include calls on descriptors whose
// file is not known.
struct penstock_thread {
  uint32_t thread;  // gettid()
  uint32_t reserved;
  uint64_t begin_ticks;
  uint64_t end_ticks;       // PENSTOCK_NEVER while the thread runs
  uint64_t kernel_read;     // bytes of the calls that the kernel counts in rchar, including reads by streams
  uint64_t kernel_written;  // bytes of the calls that the kernel counts in wchar
  uint64_t ring_read;       // bytes of io_uring and libaio, which rchar does not include
  uint64_t ring_written;
  uint64_t spliced;  // bytes of splice, tee and vmsplice, which rchar and wchar do not include
  uint64_t mapped;   // bytes that were mapped from files
  char name[16];
  uint64_t missed;        // failed calls on names for which the thread has no counters
  uint64_t missed_ticks;  // duration of the calls in `missed`
  uint64_t spare[3];
};

// One call. Segments are recorded only while bit 0 of `control` in the header is set.
struct penstock_segment {
  uint64_t file;
  uint64_t offset;  // UINT64_MAX: the call has no offset
  uint64_t length;  // bytes that were read, written or mapped
  uint64_t begin_ticks;
  uint64_t end_ticks;
  uint32_t thread;
  uint8_t call;     // enum penstock_call
  uint8_t layer;    // enum penstock_layer
  uint16_t failed;  // errno; 0 if the call succeeded
};

enum penstock_call {
  PENSTOCK_CALL_OPEN = 0,
  PENSTOCK_CALL_CLOSE = 1,
  PENSTOCK_CALL_READ = 2,
  PENSTOCK_CALL_WRITE = 3,
  PENSTOCK_CALL_STAT = 4,
  PENSTOCK_CALL_SEEK = 5,
  PENSTOCK_CALL_SYNC = 6,
  PENSTOCK_CALL_MAP = 7,
  PENSTOCK_CALL_OTHER = 8,
  PENSTOCK_CALLS = 9
};

#ifdef __cplusplus
static_assert(sizeof(penstock_session_header) <= PENSTOCK_HEADER_BYTES && sizeof(penstock_block) == 64 &&
                  sizeof(penstock_counters) == 320 && sizeof(penstock_brief) == 128 &&
                  offsetof(penstock_counters, name) == offsetof(penstock_brief, name) &&
                  offsetof(penstock_counters, thread) == offsetof(penstock_brief, thread) &&
                  offsetof(penstock_counters, layer) == offsetof(penstock_brief, layer) &&
                  offsetof(penstock_counters, last_was) == offsetof(penstock_brief, last_was) &&
                  offsetof(penstock_counters, form) == offsetof(penstock_brief, form) &&
                  offsetof(penstock_counters, bytes_read) == offsetof(penstock_brief, bytes_read) &&
                  offsetof(penstock_counters, meta_ticks) == offsetof(penstock_brief, meta_ticks) &&
                  sizeof(penstock_name) == 16 && sizeof(penstock_thread) == 128 &&
                  sizeof(penstock_segment) == 48 && offsetof(penstock_session_header, trace_limit) == 6504 &&
                  offsetof(penstock_session_header, inherited_from) == 6512 &&
                  offsetof(penstock_block, renewed) == 24,
              "the layout of sessions in files must not change");
#else
_Static_assert(sizeof(struct penstock_counters) == 320 && sizeof(struct penstock_thread) == 128,
               "the layout of sessions in files must not change");
#endif

#endif
