#include "formats/testing/fault_injection.h"

#include <errno.h>
#include <sys/uio.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <limits>

#include "formats/io/file.h"

namespace shardpack::testing {
namespace {

constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

// The replacements are plain functions, so their state is here.
struct Faults {
  Syscalls real;
  uint64_t transfer_limit = kNever, write_room = kNever, read_fault_at = kNever,
           read_fault_number = kNever;
  int write_error = 0, read_error = 0, sync_error = 0, close_error = 0, rename_error = 0;
  bool interrupt = false;
  std::atomic<uint64_t> reads{0}, writes{0}, syncs{0}, closes{0};
  std::atomic<uint64_t> written{0};
};
Faults* active = nullptr;

int Fail(int error_number) {
  errno = error_number;
  return -1;
}

ssize_t FaultyPread(int descriptor, void* into, size_t bytes, off_t at) {
  Faults& f = *active;
  const uint64_t call = f.reads++, offset = static_cast<uint64_t>(at);
  if (f.interrupt && call % 2 == 0) return Fail(EINTR);
  if (call == f.read_fault_number) return Fail(f.read_error);
  if (offset >= f.read_fault_at) return Fail(f.read_error);
  const uint64_t take = std::min({uint64_t{bytes}, f.transfer_limit, f.read_fault_at - offset});
  return f.real.pread(descriptor, into, take, at);
}

// `write` takes vectors and their number.
template <typename Write>
ssize_t WriteWithFaults(const iovec* vectors, int count, const Write& write) {
  Faults& f = *active;
  const uint64_t call = f.writes++;
  if (f.interrupt && call % 2 == 0) return Fail(EINTR);
  uint64_t asked = 0;
  for (int i = 0; i < count; ++i) asked += vectors[i].iov_len;
  const uint64_t room =
      f.write_room == kNever ? kNever : f.write_room - std::min<uint64_t>(f.written, f.write_room);
  if (room == 0 && asked > 0) return Fail(f.write_error);
  const uint64_t take = std::min(f.transfer_limit, room);
  ssize_t wrote;
  if (take >= asked) {
    wrote = write(vectors, count);
  } else {
    // Only what fits, possibly ending within a vector.
    iovec some[64];
    uint64_t left = take;
    int used = 0;
    for (; used < count && used < 64 && left > 0; ++used) {
      some[used] = vectors[used];
      some[used].iov_len = std::min<uint64_t>(left, vectors[used].iov_len);
      left -= some[used].iov_len;
    }
    wrote = write(some, used);
  }
  if (wrote > 0) f.written += static_cast<uint64_t>(wrote);
  return wrote;
}

ssize_t FaultyWritev(int descriptor, const iovec* vectors, int count) {
  return WriteWithFaults(vectors, count, [=](const iovec* some, int used) {
    return active->real.writev(descriptor, some, used);
  });
}

ssize_t FaultyPwritev(int descriptor, const iovec* vectors, int count, off_t at) {
  return WriteWithFaults(vectors, count, [=](const iovec* some, int used) {
    return active->real.pwritev(descriptor, some, used, at);
  });
}

int FaultyFdatasync(int descriptor) {
  Faults& f = *active;
  ++f.syncs;
  return f.sync_error != 0 ? Fail(f.sync_error) : f.real.fdatasync(descriptor);
}

int FaultyClose(int descriptor) {
  Faults& f = *active;
  ++f.closes;
  const int closed = f.real.close(descriptor);
  return f.close_error != 0 ? Fail(f.close_error) : closed;
}

int FaultyRenameat2(int from_folder, const char* from, int to_folder, const char* to,
                    unsigned flags) {
  const Faults& f = *active;
  return f.rename_error != 0 ? Fail(f.rename_error)
                             : f.real.renameat2(from_folder, from, to_folder, to, flags);
}

}  // namespace

FaultInjection::FaultInjection() {
  if (active != nullptr) abort();
  active = new Faults;
  active->real = SyscallsForTesting();
  Syscalls& calls = SyscallsForTesting();
  calls.pread = FaultyPread;
  calls.writev = FaultyWritev;
  calls.pwritev = FaultyPwritev;
  calls.fdatasync = FaultyFdatasync;
  calls.close = FaultyClose;
  calls.renameat2 = FaultyRenameat2;
}

FaultInjection::~FaultInjection() {
  SyscallsForTesting() = active->real;
  delete active;
  active = nullptr;
}

void FaultInjection::LimitTransfers(uint64_t bytes) { active->transfer_limit = bytes; }
void FaultInjection::InterruptEverySecondCall() { active->interrupt = true; }
void FaultInjection::FailWritesAfter(uint64_t bytes, int error_number) {
  active->write_room = bytes;
  active->write_error = error_number;
}
void FaultInjection::FailReadsAt(uint64_t offset, int error_number) {
  active->read_fault_at = offset;
  active->read_error = error_number;
}
void FaultInjection::FailOneRead(uint64_t number, int error_number) {
  active->read_fault_number = number;
  active->read_error = error_number;
}
void FaultInjection::FailSyncs(int error_number) { active->sync_error = error_number; }
void FaultInjection::FailCloses(int error_number) { active->close_error = error_number; }
void FaultInjection::FailRenames(int error_number) { active->rename_error = error_number; }
uint64_t FaultInjection::reads() const { return active->reads; }
uint64_t FaultInjection::written() const { return active->written; }
uint64_t FaultInjection::syncs() const { return active->syncs; }
uint64_t FaultInjection::closes() const { return active->closes; }

}  // namespace shardpack::testing
