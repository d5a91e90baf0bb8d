// FaultInjection: while it exists, the system calls of File and StagedFile fail or do only part of
// their work.
//
//   FaultInjection faults;
//   faults.FailWritesAfter(1 << 20, ENOSPC);
//   EXPECT_TRUE(absl::IsResourceExhausted(staged->Append(two_megabytes)));
//
// Lifetime: one at a time; the destructor restores the real calls.
// Thread-safety: create it before, and destroy it after, the threads that do I/O.
// Units: bytes.
#ifndef SHARDPACK_FORMATS_TESTING_FAULT_INJECTION_H_
#define SHARDPACK_FORMATS_TESTING_FAULT_INJECTION_H_

#include <cstdint>

#include "formats/io/file.h"

namespace shardpack::testing {

// Restores the previous system calls, whatever a test replaced them with.
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

  // Limits every pread and writev to this many bytes.
  void LimitTransfers(uint64_t bytes);
  // Every second pread and writev fails with EINTR and transfers nothing.
  void InterruptEverySecondCall();
  // writev fails after this many bytes in total, like on a disk that fills up.
  void FailWritesAfter(uint64_t bytes, int error_number);
  // pread fails at this offset of any file; bytes before it can be read.
  void FailReadsAt(uint64_t offset, int error_number);
  // Only the pread with this number fails, counted from 0 since the construction.
  void FailOneRead(uint64_t number, int error_number);
  void FailSyncs(int error_number);    // fdatasync
  void FailCloses(int error_number);   // close; the descriptor is gone anyway, as on Linux
  void FailRenames(int error_number);  // renameat2; NFS answers EINVAL to its flags

  uint64_t reads() const;    // calls, including failed ones
  uint64_t written() const;  // bytes
  uint64_t syncs() const;
  uint64_t closes() const;
};

}  // namespace shardpack::testing

#endif  // SHARDPACK_FORMATS_TESTING_FAULT_INJECTION_H_
