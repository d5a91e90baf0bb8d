#include "readers/order/order.h"

#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/handles.h"
#include "api/options.h"
#include "api/structs.h"
#include "formats/io/status_macros.h"

using shardpack::Order;
using shardpack::OrderSpec;
using shardpack::api::ContentOf;
using shardpack::api::Guarded;
using shardpack::api::Known;
using shardpack::api::Making;

shardpack_code shardpack_order_make(uint64_t samples, const shardpack_order_options* options,
                                    shardpack_order** order, shardpack_error** error) {
  return Making(order, error, [&]() -> absl::StatusOr<shardpack_order*> {
    ASSIGN_OR_RETURN(const shardpack_order_options known, Known(options, "options of the order"));
    ASSIGN_OR_RETURN(OrderSpec spec, shardpack::api::OrderSpecOf(samples, known));
    ASSIGN_OR_RETURN(Order made, Order::Make(std::move(spec)));
    return new shardpack_order(std::move(made));
  });
}

shardpack_order* shardpack_order_retain(shardpack_order* order) {
  return shardpack::api::Retain(order);
}
void shardpack_order_release(shardpack_order* order) { shardpack::api::Release(order); }

uint64_t shardpack_order_steps(const shardpack_order* order) {
  return order == nullptr ? 0 : order->content->steps();
}
uint64_t shardpack_order_samples(const shardpack_order* order) {
  return order == nullptr ? 0 : order->content->samples();
}
const char* shardpack_order_explain(const shardpack_order* order) {
  return order == nullptr ? "" : order->content->explain().c_str();
}

shardpack_code shardpack_order_ids(const shardpack_order* order, uint64_t epoch, uint64_t step,
                                   uint32_t first_slot, uint64_t* ids, size_t count,
                                   shardpack_error** error) {
  return Guarded(error, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const Order* const content, ContentOf(order, "order"));
    if (count > 0) RETURN_IF_ERROR(shardpack::api::NotNull(ids, "ids"));
    const uint32_t slots = content->spec().global_batch;
    if (step >= content->steps() || first_slot > slots || count > slots - first_slot) {
      return absl::OutOfRangeError(absl::StrCat("step ", step, ", slots ", first_slot, " to ",
                                                first_slot + count, ": the order has ",
                                                content->steps(), " steps of ", slots, " slots"));
    }
    content->Ids(epoch, step, first_slot, std::span(ids, count));
    return absl::OkStatus();
  });
}
