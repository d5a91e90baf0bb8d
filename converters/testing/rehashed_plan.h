// RehashedPlan: a changed plan file whose hashes fit again, so that a test gets past them.
//
//   std::string bytes = plan.ToBytes();  bytes[at] = 0;
//   auto read = Plan::FromBytes(RehashedPlan(bytes), &FindMadeUpFormat);   // the parser judges
//
// Where the change leaves no parts to be hashed, the bytes are returned as they are.
#ifndef SHARDPACK_CONVERTERS_TESTING_REHASHED_PLAN_H_
#define SHARDPACK_CONVERTERS_TESTING_REHASHED_PLAN_H_

#include <string>

namespace shardpack::testing {

std::string RehashedPlan(std::string bytes);

}  // namespace shardpack::testing

#endif  // SHARDPACK_CONVERTERS_TESTING_REHASHED_PLAN_H_
