// OwnOperation: an operation that a user has made: a function, or a shared library
// (shardpack_op.h).
//
//   AugmentPlan plan = *AugmentPlan::Parse("own(darken, p=.5) equalize");
//   absl::Status added = plan.Add({.name = "darken", .run = [](const EditablePixels& image,
//                                  const SampleIdentity&, uint64_t random) { ... }});
//   absl::StatusOr<OwnOperation> more = OpenPlugin("./my_noise.so", "amount=3");
//
// Lifetime: a value; copies share what a plug-in has made.
// Thread-safety: `run` is called from any number of threads at once.
// Errors: OpenPlugin: those of reading the file, such as NotFound; FailedPrecondition that names
// the file: it cannot be loaded, exports no shardpack_op_v1, lacks a name or function, or has
// changed since this process loaded it, which still has the code of then; Unimplemented: it is of
// another ABI; InvalidArgument: it refuses the parameters. Those of `run`, exceptions among them,
// make bad samples.
#ifndef SHARDPACK_AUGMENT_OWN_OPERATION_H_
#define SHARDPACK_AUGMENT_OWN_OPERATION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "augment/editable_pixels.h"
#include "images/augment/random_numbers.h"

namespace shardpack {

// Changes pixels in place. `random` depends on the sample and the step alone.
using OwnFunction = std::function<absl::Status(const EditablePixels& image,
                                               const SampleIdentity& sample, uint64_t random)>;

struct OwnOperation {
  std::string name;  // a word of letters, digits and _
  // What else decides its pixels, for the digest of cursors: parameters, and what a file hashes to.
  std::string facts = {};
  OwnFunction run;
};

// Whether it is a word that can stand in a plan, and there is a function.
absl::Status CheckOwnOperation(const OwnOperation& operation);

absl::StatusOr<OwnOperation> OpenPlugin(const std::string& path, std::string_view parameters);

// Of a C function, a shardpack_op_run, such as the address of a numba.cfunc.
OwnOperation OwnOfC(std::string name, std::string_view parameters, const void* run, void* self);

// One that a program has drawn.
struct OwnDraw {
  std::string name;
  std::shared_ptr<const OwnOperation> operation;  // null: the plan does not know it
  SampleIdentity sample;
  uint64_t random = 0;

  friend bool operator==(const OwnDraw& a, const OwnDraw& b) {
    return a.name == b.name && a.operation == b.operation && a.random == b.random;
  }
};
absl::Status RunOwn(const OwnDraw& drawn, const EditablePixels& image);

}  // namespace shardpack

#endif  // SHARDPACK_AUGMENT_OWN_OPERATION_H_
