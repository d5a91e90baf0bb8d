#include "cuda/loading/open_pinned_loader.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace shardpack {

absl::StatusOr<Loader> OpenPinnedLoader(const Dataset& dataset, const Order& order, Rank rank,
                                        LoaderOptions options, PinnedMemory& memory,
                                        std::optional<Cursor> cursor) {
  options.memory_bytes = std::min(options.memory_bytes, memory.options().budget_bytes);
  const auto log = [&memory](const std::string& line) {
    if (memory.options().log != nullptr) memory.options().log(line);
  };
  memory.set_pageable_allowed(false);
  LoaderOptions half = options;
  half.memory_bytes /= 2;
  absl::StatusOr<Loader> loader = Loader::Open(dataset, order, rank, options, memory, cursor);
  if (absl::IsResourceExhausted(loader.status())) {
    log(absl::StrCat("batches get ", half.memory_bytes, " bytes of memory instead of ",
                     options.memory_bytes, ": ", std::string(loader.status().message())));
    absl::StatusOr<Loader> again = Loader::Open(dataset, order, rank, half, memory, cursor);
    if (again.ok() || !absl::IsResourceExhausted(again.status())) loader = std::move(again);
  }
  memory.set_pageable_allowed(memory.options().pageable_fallback);
  if (!absl::IsResourceExhausted(loader.status()) || !memory.options().pageable_fallback)
    return loader;
  log("batches get pageable memory: copies from it are slow, and the host waits for them");
  absl::StatusOr<Loader> pageable = Loader::Open(dataset, order, rank, options, memory, cursor);
  if (pageable.ok() || !absl::IsResourceExhausted(pageable.status())) return pageable;
  return loader;
}

}  // namespace shardpack
