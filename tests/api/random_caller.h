// RandomCaller: calls functions of the C interface at random, as no reasonable program would, and
// checks what each call promises: codes, errors, results, the bytes of samples.
//
//   RandomCaller caller(disk, Choices(seed), &shared);
//   for (int i = 0; i < 400; ++i) caller.Call();
//   caller.ReleaseAll();
//
// Every handle that it has is a reference of its own. Handles go from one caller to another through
// a SharedHandles, as references, too.
//
// Thread-safety: one thread a caller.
// Errors: failures of the test, with the last calls.
#ifndef SHARDPACK_TESTS_API_RANDOM_CALLER_H_
#define SHARDPACK_TESTS_API_RANDOM_CALLER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "api/shardpack.h"
#include "tests/api/choices.h"
#include "tests/api/dataset_on_disk.h"

namespace shardpack::testing {

// A struct of the interface with its size.
template <typename T>
T Sized() {
  T all = {};
  all.size = sizeof(all);
  return all;
}

struct HeldDataset {
  shardpack_dataset* handle = nullptr;
  std::vector<uint64_t> samples;  // the number on disk of each id
};

struct HeldLoader {
  shardpack_loader* handle = nullptr;
  std::vector<uint64_t> samples;
  bool device = false, page_locked = false, before_fork = false;
  std::shared_ptr<std::mutex> next = {};  // of a loader that several threads use
};

struct HeldBatch {
  shardpack_batch* handle = nullptr;
  std::vector<uint64_t> samples;
  bool readable = true;  // its bytes, by this process
  bool page_locked = false;
};

struct SharedHandles {
  std::mutex mutex;
  std::vector<HeldDataset> datasets;
  std::vector<HeldBatch> batches;
  // Released by their owner once all callers are done.
  std::vector<HeldLoader> loaders;
};

class RandomCaller {
 public:
  RandomCaller(const DatasetOnDisk& disk, Choices choices, SharedHandles* shared = nullptr)
      : disk_(disk), choices_(choices), shared_(shared) {}

  void Call();
  void ReleaseAll();
  // What comes next is called in a forked child.
  void SetForked();
  void OpenShared(int loaders);  // fills `shared`
  bool choices_used_up() const { return choices_.used_up(); }

 private:
  using Codes = std::initializer_list<shardpack_code>;

  uint64_t Below(uint64_t most) { return choices_.Below(most); }
  bool Chance(uint64_t of) { return Below(of) == 0; }
  template <typename H>
  H* Pick(std::vector<H>& held) {
    return held.empty() ? nullptr : &held[Below(held.size())];
  }
  template <typename H>
  H Take(std::vector<H>& held) {
    const size_t n = Below(held.size());
    H taken = held[n];
    held.erase(held.begin() + static_cast<ptrdiff_t>(n));
    return taken;
  }

  // For the last argument of a call, which is noted by its name.
  shardpack_error** Noting(const char* call);
  // Whether the code is OK; a failure if it is neither that nor one of the others.
  bool Ok(shardpack_code code, Codes others = {});
  std::string History() const;

  void OpenDataset();
  void MakeDataset();
  void InspectDataset();
  void InspectColumn(const HeldDataset& dataset);
  void FindSample(const HeldDataset& dataset);
  void ReadSamples();
  void MakeOrder();
  void InspectOrder();
  void OpenLoader();
  void UseLoader(const HeldLoader& loader);
  void NextBatch(const HeldLoader& loader);
  void Watch(const HeldLoader& loader);
  void End(const HeldLoader& loader);
  void InspectBatch();
  void InspectSpans(const HeldBatch& batch, const shardpack_batch_view& view);
  void ExportBatch();
  void UseDevice();
  void ToDevice(shardpack_device* device);
  void OpenResident(shardpack_device* device);
  void CheckDecode();
  void DecodeImage();
  void Share();
  // A failure if the code is OK, or not one of those; without codes, if it is not INVALID.
  void Refused(shardpack_code code, Codes codes = {});
  size_t WrongSize(size_t right);
  void Misuse();
  void MisuseDataset();
  void MisuseOrder();
  void MisuseLoader();
  void MisuseBatch();
  void MisuseNothing();
  void ReleaseSome();
  void ReleaseLoader(HeldLoader loader);

  shardpack_decode RandomDecode();
  std::vector<uint64_t> RandomIds(uint64_t samples, uint64_t most);

  const DatasetOnDisk& disk_;
  Choices choices_;
  SharedHandles* const shared_;
  bool forked_ = false;
  std::deque<std::string> history_;
  shardpack_error* error_ = nullptr;
  bool wants_error_ = false;
  std::vector<HeldDataset> datasets_;
  std::vector<shardpack_order*> orders_;
  std::vector<HeldLoader> loaders_;
  std::vector<HeldBatch> batches_;
  std::vector<void*> exports_;  // DLManagedTensor
  std::vector<std::string> cursors_;
};

}  // namespace shardpack::testing

#endif  // SHARDPACK_TESTS_API_RANDOM_CALLER_H_
