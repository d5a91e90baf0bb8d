// CpuAugment: preprocesses and augments batches on the CPU, by threads: of plans that no device can
// do (device_augment.h), and where the device is the CPU.
//
//   CpuAugment augment(plan, threads);
//   absl::Status done = augment.Preprocess(launch, identities, why);
//   if (!why[slot].ok()) ...   // an operation of a user failed, say: what is there is undefined
//
// Lifetime: borrows the plan.
// Thread-safety: one thread at a time.
// Errors: those of CheckPreprocess; of a sample those of PreprocessOnHost and ProgramRunner.
#ifndef SHARDPACK_CUDA_LOADING_CPU_AUGMENT_H_
#define SHARDPACK_CUDA_LOADING_CPU_AUGMENT_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "augment/plan.h"
#include "augment/program.h"
#include "cuda/kernels/preprocess.h"
#include "images/augment/random_numbers.h"

namespace shardpack {

class CpuAugment {
 public:
  CpuAugment(const AugmentPlan& plan, int threads);

  // As PreprocessByThreads, with what the plan draws for each sample; nullopt is padding. One
  // status a sample.
  absl::Status Preprocess(const PreprocessLaunch& launch,
                          std::span<const std::optional<SampleIdentity>> samples,
                          std::span<absl::Status> why);

 private:
  // What a thread keeps from image to image, and from batch to batch.
  struct Worker {
    std::vector<uint8_t> levels;
    ProgramRunner runner;
    SampleProgram program;
  };
  absl::Status Make(Worker& worker, const PreprocessLaunch& one, const SampleIdentity& sample);

  const AugmentPlan& plan_;
  std::vector<Worker> workers_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_LOADING_CPU_AUGMENT_H_
