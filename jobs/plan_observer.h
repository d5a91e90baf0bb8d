// PlanObserver: receives messages and progress while a plan is made. Each method does nothing
// unless it is overridden.
//
//   class Shown : public PlanObserver { void Warn(const std::string& text) override { ... } };
//
// Thread-safety: called on the thread of PreparePlan; `done` of a stage may be called on any thread
// until the stage ends.
#ifndef SHARDPACK_JOBS_PLAN_OBSERVER_H_
#define SHARDPACK_JOBS_PLAN_OBSERVER_H_

#include <cstdint>
#include <functional>
#include <string>

namespace shardpack {

class PlanObserver {
 public:
  virtual ~PlanObserver() = default;

  virtual void Note(const std::string& /*text*/) {}
  virtual void Warn(const std::string& /*text*/) {}
  // Begins a stage that may take long: "listing" counts files while they are found (`total` 0),
  // "looking at" reads `total` images.
  virtual void BeginStage(const std::string& /*stage*/, std::function<uint64_t()> /*done*/,
                          uint64_t /*total*/) {}
  virtual void EndStage() {}
};

}  // namespace shardpack

#endif  // SHARDPACK_JOBS_PLAN_OBSERVER_H_
