#include "api/options.h"

#include <cmath>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "api/structs.h"
#include "augment/own_operation.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"

namespace shardpack::api {
namespace {

// The value with this number among those of an enumeration of the C interface.
template <typename T, size_t n>
absl::StatusOr<T> Choose(uint32_t number, const T (&values)[n], const char* what) {
  if (number < n) return values[number];
  return absl::InvalidArgumentError(
      absl::StrCat(what, " is ", number, ", where 0 to ", n - 1, " have a meaning"));
}

absl::Status MustBeZero(uint64_t reserved) {
  if (reserved == 0) return absl::OkStatus();
  return absl::InvalidArgumentError("the reserved members of the options must be zero");
}

absl::Status MustBeFlag(uint32_t number, const char* name) {
  if (number <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, " must be 0 or 1"));
}

template <typename T>
void SetUnlessZero(T given, T& option) {
  if (given != 0) option = given;
}

}  // namespace

absl::StatusOr<OutputFormat> OutputOf(uint32_t type, uint32_t layout, const float mean[3],
                                      const float std[3]) {
  static constexpr PixelType kTypes[] = {PixelType::kU8, PixelType::kF32, PixelType::kF16,
                                         PixelType::kBf16};
  static constexpr PixelLayout kLayouts[] = {PixelLayout::kNhwc, PixelLayout::kNchw};
  OutputFormat output;
  ASSIGN_OR_RETURN(output.type, Choose(type, kTypes, "the type of pixels"));
  ASSIGN_OR_RETURN(output.layout, Choose(layout, kLayouts, "the layout of pixels"));
  for (size_t c = 0; c < 3; ++c) {
    if (!std::isfinite(mean[c])) {
      return absl::InvalidArgumentError(
          absl::StrCat("mean must be a finite number, not ", mean[c]));
    }
    if (!std::isfinite(std[c]) || std[c] < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("std must be a finite number above 0, not ", std[c]));
    }
    output.mean[c] = mean[c];
    SetUnlessZero(std[c], output.std[c]);
  }
  return output;
}

absl::StatusOr<ResizeFilter> FilterOf(uint32_t filter) {
  static constexpr ResizeFilter kFilters[] = {ResizeFilter::kBilinear, ResizeFilter::kBox,
                                              ResizeFilter::kBicubic, ResizeFilter::kLanczos};
  return Choose(filter, kFilters, "the filter");
}

absl::StatusOr<PixelPipelineOptions> DecodeOf(const shardpack_decode* decode) {
  RETURN_IF_ERROR(NotNull(decode, "decode"));
  ASSIGN_OR_RETURN(const shardpack_decode given, Known(decode, "options of decoding"));
  static constexpr CropKind kKinds[] = {CropKind::kRandomResized, CropKind::kCenter,
                                        CropKind::kResize};
  RETURN_IF_ERROR(MustBeZero(given.reserved));
  PixelPipelineOptions options;
  CropOptions& crop = options.crop;
  ASSIGN_OR_RETURN(crop.kind, Choose(given.crop, kKinds, "the kind of crop"));
  SetUnlessZero(given.width, crop.width);
  SetUnlessZero(given.height, crop.height);
  SetUnlessZero(given.min_scale, crop.min_scale);
  SetUnlessZero(given.max_scale, crop.max_scale);
  SetUnlessZero(given.min_ratio, crop.min_ratio);
  SetUnlessZero(given.max_ratio, crop.max_ratio);
  SetUnlessZero(given.shortest_side, crop.shortest_side);
  crop.flip_probability = given.flip_probability;
  RETURN_IF_ERROR(CheckCropOptions(crop));
  ASSIGN_OR_RETURN(options.filter, FilterOf(given.filter));
  if (given.channels != 0 && given.channels != 1 && given.channels != 3)
    return absl::InvalidArgumentError("channels must be 1 or 3");
  SetUnlessZero(static_cast<uint8_t>(given.channels), options.channels);
  ASSIGN_OR_RETURN(options.output, OutputOf(given.type, given.layout, given.mean, given.std));
  RETURN_IF_ERROR(MustBeFlag(given.ignore_orientation, "ignore_orientation"));
  RETURN_IF_ERROR(MustBeFlag(given.fast, "fast"));
  options.orient = given.ignore_orientation == 0;
  options.fast = given.fast != 0;
  SetUnlessZero(given.max_pixels, options.max_pixels);
  SetUnlessZero(given.max_scans, options.max_scans);
  return options;
}

absl::StatusOr<FieldDecode> FieldDecodeOf(const shardpack_field_decode* decode) {
  static constexpr FieldAs kAs[] = {FieldAs::kImage, FieldAs::kLabels, FieldAs::kCoco,
                                    FieldAs::kCocoLabels};
  static constexpr Overlap kOverlaps[] = {Overlap::kIgnore, Overlap::kLast};
  static constexpr Share kShares[] = {Share::kAll, Share::kGeometry, Share::kNone};
  static constexpr BoxFormat kFormats[] = {BoxFormat::kXyxy, BoxFormat::kXywh};
  RETURN_IF_ERROR(NotNull(decode, "a field decode"));
  ASSIGN_OR_RETURN(const shardpack_field_decode given, Known(decode, "options of a field"));
  RETURN_IF_ERROR(NotNull(given.field, "the name of a field"));
  FieldDecode made = {.field = given.field};
  ASSIGN_OR_RETURN(made.as, Choose(given.kind, kAs, "what a field becomes"));
  ASSIGN_OR_RETURN(made.share, Choose(given.share, kShares, "what a field shares"));
  ASSIGN_OR_RETURN(made.overlap, Choose(given.overlap, kOverlaps, "what overlaps become"));
  RETURN_IF_ERROR(MustBeZero(given.reserved));
  for (const auto& [flag, name] : {std::pair(given.wide_labels, "wide_labels"),
                                   std::pair(given.legacy_nearest, "legacy_nearest"),
                                   std::pair(given.ignore_zero, "ignore_zero"),
                                   std::pair(given.box_from_polygon, "box_from_polygon"),
                                   std::pair(given.polygons, "polygons")}) {
    RETURN_IF_ERROR(MustBeFlag(flag, name));
  }
  LabelMapOptions& labels = made.labels;
  labels.wide = given.wide_labels != 0;
  labels.legacy = given.legacy_nearest != 0;
  if (given.ignore > 65'535 || (given.ignore > 0 && given.ignore_zero != 0))
    return absl::InvalidArgumentError("ignore must be below 65536, and 0 with ignore_zero");
  SetUnlessZero(static_cast<uint16_t>(given.ignore), labels.ignore);
  if (given.ignore_zero != 0) labels.ignore = 0;
  labels.classes = given.classes;
  if (given.color_count > 0) RETURN_IF_ERROR(NotNull(given.colors, "colors"));
  if (given.color_count > (1 << 24)) return absl::InvalidArgumentError("too many colours");
  for (size_t i = 0; i < given.color_count; ++i) {
    const shardpack_label_color& color = given.colors[i];
    RETURN_IF_ERROR(MustBeZero(color.reserved));
    if (color.label > 65'535)
      return absl::InvalidArgumentError("a colour's label must be below 65536");
    labels.colors.push_back(
        {color.red, color.green, color.blue, static_cast<uint16_t>(color.label)});
  }
  ObjectOptions& objects = made.objects;
  ASSIGN_OR_RETURN(objects.format, Choose(given.box_format, kFormats, "the format of boxes"));
  objects.min_visible = given.min_visible;
  objects.box_from_polygon = given.box_from_polygon != 0;
  objects.polygons = given.polygons != 0;
  objects.keypoints = given.keypoints;
  if (given.keypoint_pairs > 0) RETURN_IF_ERROR(NotNull(given.pairs, "pairs"));
  if (given.keypoint_pairs > given.keypoints)
    return absl::InvalidArgumentError("more pairs than keypoints");
  for (size_t i = 0; i < given.keypoint_pairs; ++i)
    objects.pairs.emplace_back(given.pairs[2 * i], given.pairs[2 * i + 1]);
  return made;
}

absl::StatusOr<OrderSpec> OrderSpecOf(uint64_t samples, const shardpack_order_options& options) {
  static constexpr OrderMode kModes[] = {OrderMode::kShuffle, OrderMode::kSequential,
                                         OrderMode::kBlockShuffle};
  static constexpr Tail kTails[] = {Tail::kDrop, Tail::kPad};
  RETURN_IF_ERROR(MustBeZero(options.reserved));
  OrderSpec spec;
  spec.samples = samples;
  ASSIGN_OR_RETURN(spec.mode, Choose(options.mode, kModes, "the mode of the order"));
  ASSIGN_OR_RETURN(spec.tail, Choose(options.tail, kTails, "the tail of the order"));
  spec.seed = options.seed;
  SetUnlessZero(options.global_batch, spec.global_batch);
  SetUnlessZero(options.block_samples, spec.block_samples);
  SetUnlessZero(options.window_blocks, spec.window_blocks);
  spec.epoch_samples = options.epoch_samples;
  if (options.subset_count > 0) RETURN_IF_ERROR(NotNull(options.subset, "subset"));
  if (options.subset_count > kMaxOrderSamples)
    return absl::InvalidArgumentError("the subset has too many ids");
  if (options.subset != nullptr) {
    spec.subset = std::make_shared<const std::vector<uint64_t>>(
        options.subset, options.subset + options.subset_count);
  }
  if (options.mixture_count > 0) RETURN_IF_ERROR(NotNull(options.mixture, "mixture"));
  if (options.mixture_count > kMaxMixtureParts)
    return absl::InvalidArgumentError("the mixture has too many parts");
  for (size_t i = 0; i < options.mixture_count; ++i) {
    const shardpack_mixture_part& part = options.mixture[i];
    spec.mixture.push_back(
        {.first_id = part.first_id, .samples = part.samples, .weight = part.weight});
  }
  return spec;
}

absl::StatusOr<MixOptions> MixOf(const shardpack_mix* mix) {
  RETURN_IF_ERROR(NotNull(mix, "mix"));
  ASSIGN_OR_RETURN(const shardpack_mix given, Known(mix, "options of mixing"));
  MixOptions options{.mixup_alpha = given.mixup,
                     .cutmix_alpha = given.cutmix,
                     .classes = given.classes,
                     .smoothing = given.smoothing};
  SetUnlessZero(given.probability, options.probability);
  SetUnlessZero(given.cutmix_share, options.cutmix_share);
  SetUnlessZero(given.group, options.group);
  return options;
}

absl::StatusOr<OwnOperation> OwnOperationOf(const shardpack_own_operation* operation) {
  RETURN_IF_ERROR(NotNull(operation, "an operation"));
  ASSIGN_OR_RETURN(const shardpack_own_operation given, Known(operation, "an operation"));
  const std::string_view parameters = given.parameters == nullptr ? "" : given.parameters;
  if (given.plugin != nullptr) return OpenPlugin(given.plugin, parameters);
  RETURN_IF_ERROR(NotNull(given.name, "the name of an operation"));
  RETURN_IF_ERROR(NotNull(given.run, "the function of an operation"));
  return OwnOfC(given.name, parameters, given.run, given.self);
}

absl::StatusOr<LoaderOptions> LoaderOptionsOf(const shardpack_loader_options& options) {
  static constexpr BadSamples kPolicies[] = {BadSamples::kFail, BadSamples::kSubstitute};
  LoaderOptions made;
  if (options.fields != nullptr || options.field_count > 0) {
    ASSIGN_OR_RETURN(made.fields, TextsOf(options.fields, options.field_count, "a field"));
  }
  if (options.decode != nullptr) {
    ASSIGN_OR_RETURN(made.decode, DecodeOf(options.decode));
  }
  ASSIGN_OR_RETURN(made.mask_fields,
                   TextsOf(options.decode_fields, options.decode_field_count, "a decode field"));
  if (options.field_decode_count > 0)
    RETURN_IF_ERROR(NotNull(options.field_decodes, "field_decodes"));
  for (size_t i = 0; i < options.field_decode_count; ++i) {
    ASSIGN_OR_RETURN(FieldDecode field, FieldDecodeOf(options.field_decodes[i]));
    made.decode_fields.push_back(std::move(field));
  }
  made.augment_seed = options.augment_seed;
  if (options.augment != nullptr) {
    ASSIGN_OR_RETURN(made.augment, AugmentPlan::Parse(options.augment));
  }
  if (options.own_operation_count > 0)
    RETURN_IF_ERROR(NotNull(options.own_operations, "own_operations"));
  for (size_t i = 0; i < options.own_operation_count; ++i) {
    ASSIGN_OR_RETURN(OwnOperation operation, OwnOperationOf(options.own_operations[i]));
    RETURN_IF_ERROR(made.augment.Add(std::move(operation)));
  }
  if (options.mix != nullptr) {
    ASSIGN_OR_RETURN(made.mix, MixOf(options.mix));
  }
  SetUnlessZero(options.views, made.views);
  RETURN_IF_ERROR(MustBeFlag(options.other_augment, "other_augment"));
  made.other_augment = options.other_augment != 0;
  made.epochs = options.epochs;
  SetUnlessZero(options.memory_bytes, made.memory_bytes);
  SetUnlessZero(options.max_bad_samples, made.max_bad_samples);
  ASSIGN_OR_RETURN(made.bad_samples, Choose(options.bad_samples, kPolicies, "bad_samples"));
  RETURN_IF_ERROR(CheckThreads(options.threads, "threads", 0));
  RETURN_IF_ERROR(CheckThreads(options.io_threads, "io_threads", -1));
  RETURN_IF_ERROR(MustBeFlag(options.no_verify, "no_verify"));
  RETURN_IF_ERROR(MustBeFlag(options.map_shards, "map_shards"));
  SetUnlessZero(options.threads, made.threads);
  SetUnlessZero(options.io_threads, made.io_threads);
  SetUnlessZero(options.prefetch_batches, made.prefetch_batches);
  made.verify = options.no_verify == 0;
  made.map_warm_shards = options.map_shards != 0;
  return made;
}

absl::Status CheckThreads(int32_t threads, const char* name, int32_t least) {
  if (threads < least) {
    return absl::InvalidArgumentError(absl::StrCat(name, " must be ", least, " or more"));
  }
  if (threads > kMostThreads) {
    return absl::InvalidArgumentError(absl::StrCat(name, " must be ", kMostThreads, " or less"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<Cursor>> CursorOf(const char* text) {
  if (text == nullptr) return std::nullopt;
  std::string_view line = text;  // as it was read from a file
  while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
  ASSIGN_OR_RETURN(const Cursor cursor, CursorFromText(line));
  return cursor;
}

absl::StatusOr<std::string> AbsolutePath(const char* path) {
  std::error_code failed;
  std::string absolute = std::filesystem::absolute(path, failed).string();
  if (failed) return IoStatus("find the working folder of", path, failed.value());
  return absolute;
}

absl::StatusOr<std::vector<std::string>> TextsOf(const char* const* texts, size_t count,
                                                 const char* what) {
  if (count > 0) RETURN_IF_ERROR(NotNull(texts, what));
  std::vector<std::string> copies;
  for (size_t i = 0; i < count; ++i) {
    RETURN_IF_ERROR(NotNull(texts[i], what));
    copies.emplace_back(texts[i]);
  }
  return copies;
}

}  // namespace shardpack::api
