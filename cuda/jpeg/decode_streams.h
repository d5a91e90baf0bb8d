// DecodeStreams: streams of which the engines and each lane of a decoder have one, so that none
// waits for the others' work; another stream then waits for all.
//
//   DecodeStreams streams(device, lanes);
//   ... work on streams.engines(stream), streams.lane(0, stream), ...
//   absl::Status status = streams.Join(stream);   // what comes there runs after all of it
//
// Lanes beyond kMostLanes share some. Where a stream cannot be made its work goes to the one that
// is to wait.
//
// Lifetime: the device outlives it; it outlives what is enqueued.
// Thread-safety: engines and lane from any thread, the rest from one.
// Errors: those of the device.
#ifndef SHARDPACK_CUDA_JPEG_DECODE_STREAMS_H_
#define SHARDPACK_CUDA_JPEG_DECODE_STREAMS_H_

#include <chrono>
#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuda/device/device.h"

namespace shardpack {

class DecodeStreams {
 public:
  static constexpr size_t kMostLanes = 4;

  DecodeStreams(Device& device, size_t lanes);
  ~DecodeStreams();
  DecodeStreams(const DecodeStreams&) = delete;
  DecodeStreams& operator=(const DecodeStreams&) = delete;

  // Whether there are none, so that all work goes to the stream that is to wait.
  bool empty() const { return all_.empty(); }
  Stream engines(Stream otherwise) const { return At(0, otherwise); }
  Stream lane(size_t lane, Stream otherwise) const {
    return all_.empty() ? otherwise : At(1 + lane % (all_.size() - 1), otherwise);
  }
  // What comes on the lanes from now on runs after the engines' work.
  absl::Status PutLanesBehindEngines();
  absl::Status Join(Stream stream);
  // Also of what nothing could be made to wait for. False if that takes longer.
  bool WaitUntilIdle(std::chrono::milliseconds patience) const;
  // Whether they are now.
  absl::StatusOr<bool> AreIdle() const;

 private:
  struct Branch {
    Stream stream = nullptr;
    Event event = nullptr;
  };
  Stream At(size_t i, Stream otherwise) const {
    return i < all_.size() ? all_[i].stream : otherwise;
  }

  Device& device_;
  std::vector<Branch> all_;  // the engines' first; at least two, or none
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_JPEG_DECODE_STREAMS_H_
