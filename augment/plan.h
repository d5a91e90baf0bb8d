// AugmentPlan: what is drawn for every sample: operations with random parameters, in order.
//
//   absl::StatusOr<AugmentPlan> plan = AugmentPlan::Parse(
//       "augment/1 color_jitter(b=.4, c=.4, s=.4, h=.1) rand_augment(n=2, m=9) erase(p=.25)");
//   SampleProgram program;
//   plan->Draw({seed, epoch, id}, 224, 224, program);   // "hue(0.03) ... rotate(-9) equalize"
//
// A draw is a pure function of its arguments: a sample gets the same program on any thread, rank
// and processor. The text's version fixes every definition. Steps:
//   any operation of operation.h, with numbers or ranges:   rotate(-10..10)  gamma(gamma=.8..1.2)
//   color_jitter(b, c, s, h)     torchvision's ColorJitter; a number x is 1-x..1+x (h: -x..x)
//   rand_augment(n=2, m=9, bins=31)     trivial_augment_wide(bins=31)
//   auto_augment(imagenet | cifar10 | svhn)
//   perspective(distortion=.5, p=.5, bilinear=1, fill=0)     torchvision's RandomPerspective
//   elastic(alpha=50, sigma=5, bilinear=1, fill=0)     torchvision's ElasticTransform
//   aug_mix(severity=3, width=3, depth=-1, alpha=1, all_ops=1, bilinear=1, fill=0)     torchvision's
//     AugMix: chains of operations on copies of the image, blended. The copies go different ways,
//     so it is an error with label maps and objects (LoaderOptions::decode_fields)
//   own(NAME)     an operation of a user (own_operation.h)
//   batch(NAME)     one that the caller applies to whole batches, of which a plan knows the name
//     alone; nothing but others of its kind may follow
//   erase(p=0.5, scale=.02..0.33, ratio=.3..3.3, value=0 | random, red, green, blue)
// Each also takes p= (the probability of the step, 1 unless stated), epochs=FIRST..LAST (in which
// it takes part), and stream= (which random numbers it uses; its place in the list unless given, so
// that a step inserted in front changes those after it unless they name theirs).
//
// Lifetime: a plain value.
// Thread-safety: const, any thread.
// Errors: InvalidArgument, naming the column, the value, and the nearest name.
// Units: pixels of the result, after crop, resize and flip; levels of 0 to 255; degrees.
#ifndef SHARDPACK_AUGMENT_PLAN_H_
#define SHARDPACK_AUGMENT_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "augment/operation.h"
#include "augment/own_operation.h"
#include "augment/program.h"
#include "images/augment/random_numbers.h"

namespace shardpack {

struct PlanStep;

class AugmentPlan {
 public:
  static constexpr std::string_view kVersion = "augment/1";
  static constexpr size_t kMaxSteps = 32;

  AugmentPlan();  // draws nothing
  AugmentPlan(const AugmentPlan&);
  AugmentPlan(AugmentPlan&&) noexcept;
  AugmentPlan& operator=(const AugmentPlan&);
  AugmentPlan& operator=(AugmentPlan&&) noexcept;
  ~AugmentPlan();

  // The version in front may be left out.
  static absl::StatusOr<AugmentPlan> Parse(std::string_view text);
  // Parse(ToText()) is the same plan.
  std::string ToText() const;

  bool empty() const { return steps_.empty(); }
  // Whether a step may move pixels after the crop.
  bool MayWarp() const;
  // Whether a step may do this operation. Policies do none of perspective, elastic and OpenCV's,
  // and aug_mix alone blends.
  bool MayDo(OperationKind kind) const { return MostOf(kind) > 0; }
  // The most operations of this kind, and of any, that a sample may get; those of batches are not
  // among them.
  size_t MostOf(OperationKind kind) const;
  using OperationSet = bool (*)(OperationKind);
  size_t MostOf(OperationSet is_wanted) const;
  size_t MostOperations() const;
  // Of one step, by its place in the list; and the operation that it is for every sample, if it is.
  size_t steps() const;
  size_t MostOf(size_t step, OperationSet is_wanted) const;
  std::optional<OperationKind> AlwaysDoes(size_t step) const;
  // Gives `own(NAME)` of the text its meaning; a plan without such a step gets one at its end.
  absl::Status Add(OwnOperation operation);
  // What a loader asks first. InvalidArgument: a step own(NAME) without an operation;
  // FailedPrecondition: a step needs OpenCV, and it is missing.
  absl::Status CheckReady() const;
  // All that decides what is drawn and made, for digests and for people: the text, what is known
  // of operations of users, the version of OpenCV where it is used.
  std::string Facts() const;
  // Width and height are those of the result.
  void Draw(const SampleIdentity& sample, uint32_t width, uint32_t height,
            SampleProgram& program) const;

 private:
  bool NeedsOpenCv() const;

  std::vector<PlanStep> steps_;
};

}  // namespace shardpack

#endif  // SHARDPACK_AUGMENT_PLAN_H_
