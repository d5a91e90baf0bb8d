#include "cuda/jpeg/decode_streams.h"

#include <algorithm>
#include <chrono>

#include "formats/io/status_macros.h"

namespace shardpack {

DecodeStreams::DecodeStreams(Device& device, size_t lanes) : device_(device) {
  const size_t wanted = 1 + std::clamp<size_t>(lanes, 1, kMostLanes);
  while (all_.size() < wanted) {
    const absl::StatusOr<Stream> stream = device_.CreateStream();
    if (!stream.ok()) break;
    const absl::StatusOr<Event> event = device_.CreateEvent();
    if (!event.ok()) {
      if (!device_.lost()) (void)device_.DestroyStream(*stream);
      break;
    }
    all_.push_back({*stream, *event});
  }
  if (all_.size() != 1) return;
  if (!device_.lost()) (void)device_.DestroyEvent(all_[0].event);
  if (!device_.lost()) (void)device_.DestroyStream(all_[0].stream);
  all_.clear();
}

DecodeStreams::~DecodeStreams() {
  for (const Branch& branch : all_) {
    // What decodes has ended; its memory may still be given back, in the order of the stream.
    if (!device_.lost()) (void)device_.WaitUntilIdle(branch.stream, std::chrono::seconds(1));
    if (!device_.lost()) (void)device_.DestroyEvent(branch.event);
    if (!device_.lost()) (void)device_.DestroyStream(branch.stream);
  }
}

bool DecodeStreams::WaitUntilIdle(std::chrono::milliseconds patience) const {
  return std::all_of(all_.begin(), all_.end(), [&](const Branch& branch) {
    return device_.WaitUntilIdle(branch.stream, patience);
  });
}

absl::StatusOr<bool> DecodeStreams::AreIdle() const {
  for (const Branch& branch : all_) {
    ASSIGN_OR_RETURN(const bool idle, device_.IsIdle(branch.stream));
    if (!idle) return false;
  }
  return true;
}

absl::Status DecodeStreams::PutLanesBehindEngines() {
  if (all_.empty()) return absl::OkStatus();  // on the same stream
  RETURN_IF_ERROR(device_.RecordEvent(all_[0].event, all_[0].stream));
  for (size_t i = 1; i < all_.size(); ++i)
    RETURN_IF_ERROR(device_.StreamWait(all_[i].stream, all_[0].event));
  return absl::OkStatus();
}

// Where that cannot be enqueued the host waits: files and memory are given back as soon as `stream`
// has run.
absl::Status DecodeStreams::Join(Stream stream) {
  absl::Status first;
  for (const Branch& branch : all_) {
    absl::Status joined = device_.RecordEvent(branch.event, branch.stream);
    if (joined.ok()) joined = device_.StreamWait(stream, branch.event);
    if (!joined.ok()) (void)device_.WaitUntilIdle(branch.stream, std::chrono::seconds(5));
    first.Update(joined);
  }
  return first;
}

}  // namespace shardpack
