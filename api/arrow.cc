// Releases for what programs export by Arrow's C data and stream interfaces
// (https://arrow.apache.org/docs/format/CDataInterface.html,
// https://arrow.apache.org/docs/format/CStreamInterface.html).
#include <atomic>
#include <cstdint>

#include "api/shardpack.h"

namespace {

// The structs, as the specification has them.
struct ArrowSchema {
  const char *format, *name, *metadata;
  int64_t flags, n_children;
  ArrowSchema** children;
  ArrowSchema* dictionary;
  void (*release)(ArrowSchema*);
  void* private_data;
};
struct ArrowArray {
  int64_t length, null_count, offset, n_buffers, n_children;
  const void** buffers;
  ArrowArray** children;
  ArrowArray* dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};
struct ArrowArrayStream {
  void *get_schema, *get_next, *get_last_error;
  void (*release)(ArrowArrayStream*);
  void* private_data;
};

// The program may free what belongs to the struct as soon as it sees the flag.
template <typename T>
void SetFlag(T& released) {
  auto* const flag = static_cast<uint64_t*>(released.private_data);
  released.release = nullptr;
  if (flag != nullptr) std::atomic_ref(*flag).store(1, std::memory_order_release);
}

// Children that the consumer has moved away have no release any more.
template <typename T>
void ReleaseBelow(const T& parent) {
  for (int64_t i = 0; i < parent.n_children; ++i) {
    T* const child = parent.children[i];
    if (child->release != nullptr) child->release(child);
  }
  if (parent.dictionary != nullptr && parent.dictionary->release != nullptr)
    parent.dictionary->release(parent.dictionary);
}

template <typename T>
void ReleaseTree(void* address) {
  if (address == nullptr) return;
  auto& tree = *static_cast<T*>(address);
  ReleaseBelow(tree);
  SetFlag(tree);
}

}  // namespace

void shardpack_arrow_release_schema(void* schema) { ReleaseTree<ArrowSchema>(schema); }

void shardpack_arrow_release_array(void* array) { ReleaseTree<ArrowArray>(array); }

void shardpack_arrow_release_stream(void* stream) {
  if (stream != nullptr) SetFlag(*static_cast<ArrowArrayStream*>(stream));
}
