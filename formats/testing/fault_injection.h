// FaultInjection: makes the system calls under File and StagedFile fail, or do less than was asked,
// while it lives.
//
//   FaultInjection faults;
//   faults.FailWritesAfter(1 << 20, ENOSPC);
//   EXPECT_TRUE(absl::IsResourceExhausted(staged->Append(two_megabytes)));
//
// Lifetime: one at a time; the destructor puts the real calls back.
// Thread-safety: set it up before and destroy it after the threads that do I/O.
// Units: bytes.
#ifndef SHARDPACK_FORMATS_TESTING_FAULT_INJECTION_H_
#define SHARDPACK_FORMATS_TESTING_FAULT_INJECTION_H_

#include <cstdint>

#include "formats/io/file.h"

namespace shardpack::testing {

// Puts the system calls back as it found them, whatever a test has put in their stead.
class ScopedSyscalls {
 public:
  ScopedSyscalls() = default;
  ~ScopedSyscalls() { SyscallsForTesting() = found_; }
  ScopedSyscalls(const ScopedSyscalls&) = delete;
  ScopedSyscalls& operator=(const ScopedSyscalls&) = delete;

  const Syscalls& found() const { return found_; }

 private:
  const Syscalls found_ = SyscallsForTesting();
};

class FaultInjection {
 public:
  FaultInjection();
  ~FaultInjection();
  FaultInjection(const FaultInjection&) = delete;
  FaultInjection& operator=(const FaultInjection&) = delete;

  // No pread or writev moves more than this.
  void LimitTransfers(uint64_t bytes);
  // Every second pread and writev answers EINTR and moves nothing.
  void InterruptEverySecondCall();
  // writev takes this many bytes in all, as on a disk that fills up, then fails.
  void FailWritesAfter(uint64_t bytes, int error_number);
  // pread fails at this offset of any file; what lies before is read.
  void FailReadsAt(uint64_t offset, int error_number);
  // The pread of this number, counted from 0 since the construction, fails; those after it do not.
  void FailOneRead(uint64_t number, int error_number);
  // Every pread ends here, as if the file had been cut.
  void EndFilesAt(uint64_t offset);
  void FailSyncs(int error_number);    // fdatasync
  void FailCloses(int error_number);   // close; the descriptor is gone all the same, as on Linux
  void FailRenames(int error_number);  // renameat2; EINVAL is what NFS says to its flags

  uint64_t reads() const;    // calls, those that failed included
  uint64_t written() const;  // bytes
  uint64_t syncs() const;
  uint64_t closes() const;
};

}  // namespace shardpack::testing

#endif  // SHARDPACK_FORMATS_TESTING_FAULT_INJECTION_H_
