#include "cuda/loading/batch_route.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

// Of images one after the other. Padding has no pixels, and becomes zeros.
void PointAt(const uint8_t* pixels, const BatchShape& shape, std::span<const uint64_t> ids,
             std::vector<PreprocessSample>& samples) {
  const size_t image_bytes = size_t{shape.width} * shape.height * shape.channels;
  for (size_t i = 0; i < samples.size(); ++i) {
    samples[i].pixels = ids[i] == kPaddingId ? nullptr : pixels + i * image_bytes;
  }
}

UploadCopy CopyOfPixels(const HostBatch& batch, const DeviceBuffer& buffer) {
  return {batch.pixels()->bytes.data(), buffer.pixels, batch.pixels()->bytes.size()};
}

class CopyPixels final : public BatchRoute {
 public:
  using BatchRoute::BatchRoute;

  size_t payload_bytes() const override { return 0; }
  absl::Status Stage(const HostBatch& batch, DeviceBuffer& buffer, std::byte*,
                     std::vector<UploadCopy>& copies, std::vector<BadSample>&) override {
    if (shape().pixel_bytes > 0) copies.push_back(CopyOfPixels(batch, buffer));
    return absl::OkStatus();
  }
};

class PreprocessOnDevice final : public BatchRoute {
 public:
  explicit PreprocessOnDevice(RouteContext context)
      : BatchRoute(std::move(context)), samples_(shape().Samples()) {}

  size_t payload_bytes() const override { return shape().slots * sizeof(PreprocessSample); }
  // The parameters on the device are right except for padding, which the last batch of an epoch may
  // have.
  absl::Status Stage(const HostBatch& batch, DeviceBuffer& buffer, std::byte* payload,
                     std::vector<UploadCopy>& copies, std::vector<BadSample>&) override {
    copies.push_back(CopyOfPixels(batch, buffer));
    const std::vector<uint64_t>& ids = buffer.info.ids;
    const bool padded = std::find(ids.begin(), ids.end(), kPaddingId) != ids.end();
    if (padded || buffer.padded_samples) {
      PointAt(buffer.pixels, shape(), ids, samples_);
      StageSamples(samples_, buffer, payload, copies);
    }
    buffer.padded_samples = padded;
    return absl::OkStatus();
  }
  // On a stream of its own, so that the next copies do not wait for it.
  absl::StatusOr<Stream> Launch(DeviceBuffer& buffer, Event copied) override {
    RETURN_IF_ERROR(device().StreamWait(context_.work_stream, copied));
    RETURN_IF_ERROR(device().Preprocess(shape().LaunchOf(buffer), context_.work_stream));
    return context_.work_stream;
  }

 private:
  std::vector<PreprocessSample> samples_;
};

class PreprocessOnCpu final : public BatchRoute {
 public:
  explicit PreprocessOnCpu(RouteContext context)
      : BatchRoute(std::move(context)), samples_(shape().Samples()) {}

  size_t payload_bytes() const override { return shape().pixel_bytes; }
  absl::Status Stage(const HostBatch& batch, DeviceBuffer& buffer, std::byte* payload,
                     std::vector<UploadCopy>& copies, std::vector<BadSample>&) override {
    PointAt(reinterpret_cast<const uint8_t*>(batch.pixels()->bytes.data()), shape(),
            buffer.info.ids, samples_);
    return StagePreprocessed(samples_, buffer, payload, copies);
  }

 private:
  std::vector<PreprocessSample> samples_;
};

}  // namespace

void BatchRoute::StageSamples(std::span<const PreprocessSample> samples, const DeviceBuffer& buffer,
                              std::byte* payload, std::vector<UploadCopy>& copies) const {
  std::memcpy(payload, samples.data(), samples.size_bytes());
  copies.push_back({payload, buffer.samples, samples.size_bytes()});
}

absl::Status BatchRoute::StagePreprocessed(
    std::span<const PreprocessSample> samples, const DeviceBuffer& buffer, std::byte* payload,
    std::vector<UploadCopy>& copies,
    const std::function<absl::Status(const PreprocessLaunch&, int threads)>& work) const {
  PreprocessLaunch launch = shape().LaunchOf(buffer);
  launch.samples = samples.data();
  launch.out = payload;
  RETURN_IF_ERROR(work(launch, context_.cores));
  copies.push_back({payload, buffer.pixels, shape().pixel_bytes});
  return absl::OkStatus();
}

absl::Status EnqueueSlots(Device& device, const BatchShape& shape, const DeviceBuffers& buffers,
                          const DeviceBuffer& buffer, size_t first, size_t count, Stream stream) {
  const size_t rounds = buffers.spec().tails;
  const RoundScratch& scratch = buffers.spec().scratch;
  const PreprocessLaunch all = shape.LaunchOf(buffer);
  const auto levels = [&](size_t round) {
    return buffers.scratch() + scratch.levels_at[round % scratch.levels_at.size()];
  };
  const size_t image_bytes = all.output.Bytes(all.out_width, all.out_height);
  auto* const out = static_cast<uint8_t*>(all.out) + first * image_bytes;
  PreprocessLaunch launch = all;
  launch.samples = all.samples + first;
  if (all.programs != nullptr) launch.programs = all.programs + first;
  launch.count = static_cast<uint32_t>(count);
  launch.out = out;
  if (rounds > 0) {
    launch.output = PixelOutput({}, all.channels);
    launch.out = levels(0);
  }
  RETURN_IF_ERROR(device.Preprocess(launch, stream));
  for (size_t round = 0; round < rounds; ++round) {
    RoundLaunch next{.tails = buffer.tails + round * shape.slots + first,
                     .programs = buffer.programs + (round + 1) * shape.slots + first,
                     .pixel_tables = buffer.pixel_tables,
                     .from = levels(round),
                     .count = static_cast<uint32_t>(count),
                     .channels = all.channels,
                     .width = all.out_width,
                     .height = all.out_height};
    if (scratch.has_statistics) {
      next.statistics =
          reinterpret_cast<RoundStatistics*>(buffers.scratch() + scratch.statistics_at);
      next.tables = reinterpret_cast<RoundTables*>(buffers.scratch() + scratch.tables_at);
    }
    if (round + 1 == rounds) {
      next.output = all.output;
      next.out = out;
    } else {
      next.out = levels(round + 1);
    }
    RETURN_IF_ERROR(device.AugmentRound(next, stream));
  }
  return absl::OkStatus();
}

absl::Status TryKernel(Device& device, const BatchShape& shape, const DeviceBuffers& buffers,
                       Stream stream) {
  std::vector<PreprocessSample> samples = shape.Samples();
  const std::vector<uint64_t> no_padding(shape.slots, 0);
  for (const auto& buffer : buffers.all()) {
    if (!shape.decoded_field) PointAt(buffer->pixels, shape, no_padding, samples);
    RETURN_IF_ERROR(device.CopyToDevice(buffer->samples, samples.data(),
                                        samples.size() * sizeof(PreprocessSample), stream));
    if (buffer->programs != nullptr) {
      const size_t bytes = buffers.spec().programs * shape.slots * sizeof(PixelProgram);
      RETURN_IF_ERROR(device.Fill(buffer->programs, 0, bytes, stream));
    }
    if (buffer->tails != nullptr) {
      const size_t bytes = buffers.spec().tails * shape.slots * sizeof(RoundTail);
      RETURN_IF_ERROR(device.Fill(buffer->tails, 0, bytes, stream));
    }
    RETURN_IF_ERROR(device.Synchronize(stream));
  }
  const DeviceBuffer& first = *buffers.all().front();
  RETURN_IF_ERROR(device.Fill(first.pixels, 0, buffers.spec().pixel_bytes, stream));
  absl::Status tried = EnqueueSlots(device, shape, buffers, first, 0, shape.slots, stream);
  tried.Update(device.Synchronize(stream));
  return tried;
}

std::unique_ptr<BatchRoute> MakeBatchRoute(RouteContext context, bool has_kernel) {
  if (context.shape.decoded_field) return MakeDecodeRoute(std::move(context), has_kernel);
  if (!context.shape.preprocesses()) return std::make_unique<CopyPixels>(std::move(context));
  if (has_kernel) return std::make_unique<PreprocessOnDevice>(std::move(context));
  return std::make_unique<PreprocessOnCpu>(std::move(context));
}

}  // namespace shardpack
