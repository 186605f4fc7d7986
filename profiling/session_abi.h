// The format in which a watched process writes and the rest of Penstock reads: a file of a session, and what
// the calls of a thread add to it. With span_abi.h, process_abi.h and memory_fence.hpp it is all that both
// sides share; one side is the library inside other programs (profiling/interpose). These three are C11 or
// C++, include no other header of ours, and have only integers of fixed size. Records are in memory and in
// files as they are here, in the byte order of the machine.
//
// Numbers keep their meaning for ever; new ones are added after the last. A reader skips a component that it
// does not know, and what it finds in `reserved`.
#ifndef PENSTOCK_PROFILING_SESSION_ABI_H
#define PENSTOCK_PROFILING_SESSION_ABI_H

#include <stddef.h>
#include <stdint.h>

#include "profiling/process_abi.h"
#include "profiling/span_abi.h"

// --- A session: a folder of mode 0700 with one file of mode 0600 for each image of a process (a fork begins
// a new one, and so does an exec). A file is a header followed by blocks. It is mapped while it is written,
// so what is in it survives any end of its process; docs/session_format.md says how it is read.

#define PENSTOCK_SESSION_MAGIC "PNSTKSES"  // 8 bytes, without the NUL
#define PENSTOCK_SESSION_VERSION 3
#define PENSTOCK_SESSION_BYTE_ORDER 0x01020304u
#define PENSTOCK_SESSION_SUFFIX ".session"  // of a process's file; <pid>-<begin_monotonic_ns><suffix>

// A block begins at a multiple of this after the header, and its size is a multiple of it.
#define PENSTOCK_BLOCK_GRANULE 16384u
#define PENSTOCK_HEADER_BYTES 16384u

// What the kernel counts of a process, reaped children included (/proc/PID/io).
struct penstock_kernel_io {
  uint64_t rchar;
  uint64_t wchar;
  uint64_t syscr;
  uint64_t syscw;
  uint64_t read_bytes;
  uint64_t write_bytes;
};

// Two readings at one moment. Two of these give the line from ticks to CLOCK_MONOTONIC.
struct penstock_moment {
  uint64_t ticks;
  int64_t monotonic_ns;
};

// At the begin of the file. 0 and empty mean not known. Texts end with NUL or with their field.
struct penstock_session_header {
  char magic[8];
  uint32_t version;
  uint32_t byte_order;    // PENSTOCK_SESSION_BYTE_ORDER as its writer saw it
  uint32_t header_bytes;  // where the first block begins
  uint32_t granule;
  uint32_t pid;
  uint32_t parent_pid;
  uint32_t state;             // enum penstock_process_state
  uint32_t clock;             // enum penstock_clock
  uint32_t forked;            // 1: a fork of a watched process began it, not an exec
  uint32_t control;           // bit 0: segments are kept; whoever may write the file may switch it
  uint64_t process_start;     // of /proc/PID/stat (field 22), which tells two processes of one pid apart
  int64_t begin_realtime_ns;  // CLOCK_REALTIME at `begin`
  struct penstock_moment begin;
  struct penstock_moment later[2];  // [later_index] is the newest whole reading
  uint32_t later_index;
  uint32_t kernel_end_known;               // 1: kernel_end is valid
  uint64_t ticks_per_s;                    // measured when the library was loaded: good to a thousandth
  int64_t end_monotonic_ns;                // 0 while the process runs, or if it was killed
  struct penstock_kernel_io kernel_begin;  // when the library was loaded, or 0 after a fork
  struct penstock_kernel_io kernel_end;    // the last that was read
  uint64_t file_end;                       // no block begins here or after it
  uint64_t dropped_records;  // (thread, file) pairs that found no room: their operations are counted nowhere
  uint64_t dropped_operations;  // operations of such pairs, and of handlers that interrupted an update of
                                // their own thread and could not be counted after it
  uint64_t dropped_segments;    // that found no room, or were replaced by newer ones
  uint64_t dropped_spans;
  uint64_t unnamed;  // operations on descriptors whose open was not seen and that /proc could not name
  uint32_t rank;     // of the launcher's job, and how many there are; 0 of 0 without one
  uint32_t ranks;
  uint32_t command_bytes;  // of the arguments with a NUL after each, cut at the field's end
  uint32_t begun;          // enum penstock_begun
  char host[64];
  char executable[1024];
  char directory[1024];  // the working directory at `begin`
  char command[4096];
  uint64_t trace_limit;     // bytes of segments that this file has at most; 0: no limit
  uint32_t inherited_from;  // pid of the forked process whose control this began with; 0: none
  uint32_t no_room;         // errno of the last block that the file could not grow by; 0: none
};

enum penstock_block_kind {
  PENSTOCK_BLOCK_FREE = 0,      // not in use
  PENSTOCK_BLOCK_COUNTERS = 1,  // struct penstock_counters
  PENSTOCK_BLOCK_NAMES = 2,     // struct penstock_name and its text, one after the other
  PENSTOCK_BLOCK_SEGMENTS = 3,  // struct penstock_segment
  PENSTOCK_BLOCK_SPANS = 4,     // struct penstock_span
  PENSTOCK_BLOCK_THREADS = 5,   // struct penstock_thread
  PENSTOCK_BLOCK_EVENTS = 6     // struct penstock_event and its text, one after the other
};

#define PENSTOCK_BLOCK_MAGIC 0x4b4c4250u  // "PBLK" where the low byte comes first

// 64 bytes at the begin of each block; its entries follow without gaps.
struct penstock_block {
  uint32_t magic;
  uint16_t kind;
  uint16_t entry_bytes;  // of a fixed entry; 0 if entries have sizes of their own
  uint64_t bytes;        // of the whole block
  uint64_t used;         // bytes of whole entries after this header; it grows after they are written
  uint64_t renewed;  // of segments: how often it was emptied (`used` is 0 before this grows) for newer ones
  uint64_t next;     // for the writer alone: offset of the next oldest full block of segments
  uint64_t reserved[3];
};

enum penstock_layer {
  PENSTOCK_POSIX = 0,  // descriptors
  PENSTOCK_STDIO = 1,  // streams: bytes that the program received or gave
  PENSTOCK_RING = 2,   // io_uring and libaio
  PENSTOCK_MPIIO = 3,  // above POSIX: the same bytes once more
  PENSTOCK_HDF5 = 4,   // also above POSIX
  PENSTOCK_LAYERS = 5
};

#define PENSTOCK_SIZE_BUCKETS \
  10                      // up to 100, 1 Ki, 10 Ki, 100 Ki, 1 Mi, 4 Mi, 10 Mi, 100 Mi, 1 Gi bytes, and more
#define PENSTOCK_NEVER 0  // a time in ticks that has not come

// What an entry of counters is.
enum penstock_form {
  PENSTOCK_WHOLE = 1,      // struct penstock_counters
  PENSTOCK_CONTINUED = 2,  // struct penstock_brief; what came later is in another entry
  PENSTOCK_BRIEF = 3,      // struct penstock_brief
  PENSTOCK_FURTHER = 4     // struct penstock_counters; reads that came before its own are in another entry
};

// What one thread did to one file through one layer. There may be several of one (thread, file, layer): they
// are to be added. The rules of `sequential` and `consecutive` are Darshan's: a read is sequential if it
// begins after the last byte of the read before it, and consecutive if it begins directly after that byte.
// For a file of which nothing has been read yet, the last byte is byte 0.
struct penstock_counters {
  uint64_t file;  // of struct penstock_name
  uint64_t name;  // offset in this file of the struct penstock_name; 0 if there was no room for it
  uint32_t thread;
  uint16_t layer;    // enum penstock_layer
  uint8_t last_was;  // 1: its last operation was a read, 2: a write
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
  uint32_t other;        // metadata operations that have no counter of their own: access, rename, unlink, ...
  uint32_t failures;     // calls that failed; they are counted nowhere else
  uint32_t descriptors;  // that came of dup() and inheritance
  uint32_t read_sizes[PENSTOCK_SIZE_BUCKETS];

  uint64_t last_read;  // the last byte that was read
  uint64_t size;       // of the file as far as it is known: by stat, or by the last byte that was moved
  uint64_t mapped_bytes;
  uint64_t first_ticks;  // begin of the first operation
  uint64_t last_ticks;   // end of the last one that was neither a read nor a write
  uint64_t first_read_ticks;
  uint64_t last_read_ticks;

  uint64_t bytes_written;
  uint64_t write_ticks;
  uint32_t writes;
  uint32_t sequential_writes;
  uint32_t consecutive_writes;
  uint32_t read_write_switches;
  uint32_t write_sizes[PENSTOCK_SIZE_BUCKETS];
  uint64_t last_written;  // the last byte that was written
  uint64_t first_write_ticks;
  uint64_t last_write_ticks;
};

// The same for most files, which are opened, inspected, read in a few pieces, and closed. Two cache lines, in
// blocks of their own. What has no counter here, and what comes more often than a byte can count, begins a
// whole entry.
struct __attribute__((may_alias)) penstock_brief {
  uint64_t file;  // as in penstock_counters, up to meta_ticks
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
  uint16_t reserved;
  uint32_t failures;
  uint32_t descriptors;
  uint32_t reserved_too;
};

enum penstock_file_kind {
  PENSTOCK_REGULAR = 0,  // or not known
  PENSTOCK_DIRECTORY = 1,
  PENSTOCK_OTHER_FILE = 2,  // a pipe, a socket, a terminal, a device: not on a tier
};

// A file's absolute name, as the program called it. `file` is the same for the same name in every process.
struct penstock_name {
  uint64_t file;    // XXH3_64bits of the text; 0 is none
  uint32_t length;  // of the text after this, without NUL
  uint16_t kind;    // enum penstock_file_kind
  uint16_t reserved;
  // then the text, and zeros up to a multiple of 8
};

// One thread, from its first call to its end. Bytes on all descriptors, named or not.
struct penstock_thread {
  uint32_t thread;  // gettid()
  uint32_t reserved;
  uint64_t begin_ticks;
  uint64_t end_ticks;       // PENSTOCK_NEVER while it runs
  uint64_t kernel_read;     // through calls that the kernel adds to rchar, streams' own reads included
  uint64_t kernel_written;  // the same for wchar
  uint64_t ring_read;       // through io_uring and libaio, which it does not add
  uint64_t ring_written;
  uint64_t spliced;  // through splice, tee and vmsplice, which it does not add
  uint64_t mapped;   // bytes that were mapped of files
  char name[16];
  uint64_t missed;        // calls that failed on names of which the thread knows no file
  uint64_t missed_ticks;  // time of these calls
  uint64_t spare[3];
};

// One call, where segments are kept.
struct penstock_segment {
  uint64_t file;
  uint64_t offset;  // UINT64_MAX where it has none
  uint64_t length;  // that was moved
  uint64_t begin_ticks;
  uint64_t end_ticks;
  uint32_t thread;
  uint8_t call;     // enum penstock_call
  uint8_t layer;    // enum penstock_layer
  uint16_t failed;  // errno; 0 where it succeeded
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
                  sizeof(penstock_counters) == 288 && sizeof(penstock_brief) == 128 &&
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
              "sessions lie in files");
#else
_Static_assert(sizeof(struct penstock_counters) == 288 && sizeof(struct penstock_thread) == 128,
               "sessions lie in files");
#endif

#endif
