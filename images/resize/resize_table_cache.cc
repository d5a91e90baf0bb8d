#include "images/resize/resize_table_cache.h"

#include <bit>

namespace shardpack {
namespace {

size_t PlaceOf(const ResizeAxis& axis, uint32_t out_size, bool mirror) {
  uint64_t hash = axis.in_size + (uint64_t{out_size} << 32) + mirror;
  for (const double number : {axis.first, axis.step}) {
    hash = (hash ^ std::bit_cast<uint64_t>(number)) * 0x9E3779B97F4A7C15;
    hash ^= hash >> 32;
  }
  return hash % ResizeTableCache::kPlaces;
}

}  // namespace

const ResizeTable& ResizeTableCache::Get(const ResizeAxis& axis, uint32_t out_size, bool mirror) {
  if (ResizeTable::Bytes(axis, out_size) > kMaxKeptBytes) {
    large_.Build(axis, out_size, mirror);
    return large_;
  }
  if (places_.empty()) places_.resize(kPlaces);
  Place& place = places_[PlaceOf(axis, out_size, mirror)];
  if (place.out_size != out_size || place.mirror != mirror || place.axis != axis) {
    place.out_size = 0;  // until it is whole
    place.table.Build(axis, out_size, mirror);
    place.axis = axis;
    place.mirror = mirror;
    place.out_size = out_size;
  }
  return place.table;
}

}  // namespace shardpack
