#include "cuda/loading/resident_loader.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cuda/loading/resident_order.h"
#include "cuda/loading/uploader.h"
#include "formats/io/status_macros.h"
#include "readers/loading/loader.h"

namespace shardpack {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kOpeningUploads = 8;  // within Open
constexpr uint32_t kFillBatch = 256;
constexpr std::chrono::microseconds kNap{100};

// How often a waiting call asks whether it is interrupted.
constexpr std::chrono::milliseconds kResidentLook{50};

constexpr std::chrono::milliseconds kMostPatienceAtTheEnd{5'000};

absl::Status WasInterrupted() {
  return absl::CancelledError("waiting for a batch was interrupted");
}

absl::Status OfAnotherProcess() {
  return absl::FailedPreconditionError(
      "the loader was opened in another process: a device does not survive a fork; open it after");
}

}  // namespace

class ResidentLoader::Core {
 public:
  Core(Dataset dataset, Order order, Rank rank, const ResidentOptions& options, Device& device)
      : device_(device),
        options_(options),
        dataset_(std::move(dataset)),
        order_(std::move(order)),
        rank_(rank),
        slots_(rank.slots(order_.spec().global_batch)),
        out_width_(options.crop ? options.crop->width : options.width),
        out_height_(options.crop ? options.crop->height : options.height),
        image_bytes_(size_t{options.width} * options.height * options.channels),
        output_(options.output, options.channels),
        memory_(device, {.log = options.log}) {}
  ~Core();

  absl::Status Open(const std::optional<Cursor>& cursor, const Interrupted& interrupted);
  absl::StatusOr<std::optional<DeviceBatch>> Next(const Interrupted& interrupted, AskAt ask_at);
  absl::Status EnqueueStep(const DeviceTarget& target, Stream stream);
  absl::StatusOr<std::optional<BatchInfo>> NextStep(Stream stream, const Interrupted& interrupted,
                                                    AskAt ask_at);
  Cursor cursor() const { return MakeCursor(dataset_.identity(), order_, epoch_, step_); }
  ResidentStats stats() const;
  bool InOwnProcess() const { return ::getpid() == process_; }

 private:
  bool gathers() const { return !options_.crop && output_.plain(); }
  absl::Status Reserve();
  absl::Status Fill(const Interrupted& interrupted);
  absl::Status FillFrom(Loader& loader, const Interrupted& interrupted);
  absl::Status WaitForUploads(size_t at_most, const Interrupted& interrupted,
                              AskAt ask_at = AskAt::max());
  absl::StatusOr<DeviceBuffer*> WaitForBuffer(const Interrupted& interrupted, AskAt ask_at);
  absl::Status WaitForLaunch(const DeviceBuffer& buffer, const Interrupted& interrupted,
                             AskAt ask_at);
  // Calls `done` until it gives true.
  template <typename Done>
  absl::Status WaitFor(const Done& done, const Interrupted& interrupted, AskAt ask_at);
  PreprocessSample SampleOf(uint64_t epoch, uint64_t id) const;
  void FillInfo(const ResidentStep& step, BatchInfo& info) const;
  absl::Status Enqueue(DeviceBuffer& buffer);
  // Of the step, or of what a source names.
  absl::Status Launch(const ResidentStep& step, const StepSource* source,
                      const DeviceTarget& target, Stream stream);
  // Whether there is a step; else it is the end of an epoch, or of all.
  absl::StatusOr<bool> HasStep();
  void Advance();

  Device& device_;
  const ResidentOptions options_;
  const pid_t process_ = ::getpid();
  const Dataset dataset_;
  const Order order_;
  const Rank rank_;
  const uint32_t slots_;
  const uint32_t out_width_, out_height_;
  const size_t image_bytes_;
  const PixelOutput output_;
  PinnedMemory memory_;
  std::unique_ptr<Uploader> uploader_;
  std::shared_ptr<DeviceBuffers> buffers_;
  std::optional<Stream> work_stream_;
  uint8_t* table_ = nullptr;     // one row an image, on the device
  std::vector<int64_t> labels_;  // of all images
  std::unique_ptr<ResidentOrder> steps_;
  std::optional<Stream> step_stream_;  // of NextStep
  uint64_t epoch_ = 0, step_ = 0;
  bool epoch_ended_ = false;
  DeviceBuffer* waits_ = nullptr;  // taken, while its last launch has not run
  absl::Status failed_;
  ResidentStats stats_;
};

ResidentLoader::Core::~Core() {
  uploader_.reset();
  const auto patience = std::min(options_.patience, kMostPatienceAtTheEnd);
  bool idle = !work_stream_ || device_.WaitUntilIdle(*work_stream_, patience);
  // What NextStep enqueued on the consumer's stream.
  if (idle && steps_ != nullptr) idle = steps_->WaitUntilIdle(patience);
  if (!idle || device_.lost()) {  // the device may still use it all
    ResidentOrder::Leave(std::move(steps_));
    return;
  }
  steps_.reset();
  if (table_ != nullptr && !device_.lost()) (void)device_.Free(table_);
  if (work_stream_ && !device_.lost()) (void)device_.DestroyStream(*work_stream_);
}

absl::Status ResidentLoader::Core::Reserve() {
  const uint64_t bytes = dataset_.size() * image_bytes_;
  ASSIGN_OR_RETURN(const DeviceMemory memory, device_.Memory());
  const auto max_bytes =
      static_cast<uint64_t>(static_cast<double>(memory.free_bytes) * options_.share_of_memory);
  if (bytes > max_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        dataset_.size(), " images of ", image_bytes_, " bytes take ", bytes, " bytes; ", max_bytes,
        " of the device's free memory may be used: use DeviceLoader,"
        " or keep smaller images"));
  }
  stats_.images = dataset_.size();
  stats_.image_bytes = bytes;
  ASSIGN_OR_RETURN(void* const table, device_.Allocate(bytes, "the images"));
  table_ = static_cast<uint8_t*>(table);
  return absl::OkStatus();
}

absl::Status ResidentLoader::Core::FillFrom(Loader& loader, const Interrupted& interrupted) {
  for (;;) {
    RETURN_IF_ERROR(WaitForUploads(1, interrupted));  // the Loader needs its memory
    ASSIGN_OR_RETURN(std::optional<HostBatch> batch, loader.Next(interrupted));
    if (!batch.has_value()) return absl::OkStatus();
    const std::span<const uint64_t> ids = batch->ids();
    const auto padding = std::find(ids.begin(), ids.end(), kPaddingId);
    const auto images = static_cast<size_t>(padding - ids.begin());
    std::copy_n(batch->labels().begin(), images, labels_.begin() + static_cast<ptrdiff_t>(ids[0]));
    const UploadCopy copy{batch->pixels()->bytes.data(), table_ + ids[0] * image_bytes_,
                          images * image_bytes_};
    RETURN_IF_ERROR(
        uploader_->Upload(std::make_shared<HostBatch>(*std::move(batch)), std::span(&copy, 1), {})
            .status());
  }
}

// In the order of ids, so that each batch is one copy.
absl::Status ResidentLoader::Core::Fill(const Interrupted& interrupted) {
  const Clock::time_point start = Clock::now();
  labels_.assign(dataset_.size(), kNoLabel);
  const auto batch = static_cast<uint32_t>(std::min<uint64_t>(kFillBatch, dataset_.size()));
  ASSIGN_OR_RETURN(Order all, Order::Make({.samples = dataset_.size(),
                                           .mode = OrderMode::kSequential,
                                           .global_batch = batch,
                                           .tail = Tail::kPad}));
  LoaderOptions options{
      .threads = options_.threads, .memory_bytes = memory_.options().budget_bytes / 2, .epochs = 1};
  options.decode.emplace();
  options.decode->crop = {
      .kind = CropKind::kResize, .width = options_.width, .height = options_.height};
  options.decode->filter = options_.filter;
  options.decode->channels = options_.channels;
  ASSIGN_OR_RETURN(Loader loader, Loader::Open(dataset_, all, {}, options, memory_));
  absl::Status status = FillFrom(loader, interrupted);
  if (status.ok()) {
    status = device_.Synchronize(uploader_->stream());
  }
  if (status.ok()) status = uploader_->Reclaim();
  stats_.fill_seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return status;
}

absl::Status ResidentLoader::Core::Open(const std::optional<Cursor>& cursor,
                                        const Interrupted& interrupted) {
  RETURN_IF_ERROR(CheckRank(rank_, order_.spec().global_batch));
  if (options_.width == 0 || options_.height == 0) {
    return absl::InvalidArgumentError("resident images need a width and a height");
  }
  if (order_.spec().samples != dataset_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("the order is of ", order_.spec().samples,
                                                   " samples, the dataset has ", dataset_.size()));
  }
  if (options_.crop) RETURN_IF_ERROR(CheckCropOptions(*options_.crop));
  if (cursor) {
    RETURN_IF_ERROR(CheckCursor(*cursor, dataset_.identity(), order_));
    const bool at_end = cursor->step == order_.steps();
    epoch_ = cursor->epoch + (at_end ? 1 : 0);
    step_ = at_end ? 0 : cursor->step;
  }
  RETURN_IF_ERROR(Reserve());
  ASSIGN_OR_RETURN(work_stream_, device_.CreateStream(StreamPriority::kHigh));
  ASSIGN_OR_RETURN(buffers_,
                   DeviceBuffers::Create(
                       device_, {.buffers = options_.buffers,
                                 .slots = slots_,
                                 .pixel_bytes = slots_ * output_.Bytes(out_width_, out_height_)}));
  ASSIGN_OR_RETURN(uploader_, Uploader::Create(device_, kOpeningUploads, 0, memory_));
  RETURN_IF_ERROR(Fill(interrupted));
  ResidentOrderSpec spec{.order = order_, .rank = rank_, .labels = labels_};
  if (!gathers()) {
    spec.sample = [this](uint64_t epoch, uint64_t id) { return SampleOf(epoch, id); };
  }
  ASSIGN_OR_RETURN(steps_, ResidentOrder::Create(device_, memory_, std::move(spec), *work_stream_));
  return absl::OkStatus();
}

template <typename Done>
absl::Status ResidentLoader::Core::WaitFor(const Done& done, const Interrupted& interrupted,
                                           AskAt ask_at) {
  ASSIGN_OR_RETURN(bool is_done, done());
  if (is_done) return absl::OkStatus();
  const Clock::time_point deadline = Clock::now() + options_.patience;
  Clock::time_point look = std::min(ask_at, Clock::now() + kResidentLook);
  while (!is_done) {
    if (Clock::now() >= deadline) {
      return absl::DeadlineExceededError(absl::StrCat(
          "the device has not begun a batch for ", options_.patience.count(),
          " ms; it waits for the stream that an earlier batch was released on, or hangs"));
    }
    if (interrupted != nullptr && Clock::now() >= look) {
      if (interrupted()) return WasInterrupted();
      look = Clock::now() + kResidentLook;
    }
    std::this_thread::sleep_for(kNap);
    ASSIGN_OR_RETURN(is_done, done());
  }
  return absl::OkStatus();
}

absl::Status ResidentLoader::Core::WaitForUploads(size_t at_most, const Interrupted& interrupted,
                                                  AskAt ask_at) {
  const auto done = [&]() -> absl::StatusOr<bool> {
    RETURN_IF_ERROR(uploader_->Reclaim());
    return uploader_->in_flight() <= at_most;
  };
  return WaitFor(done, interrupted, ask_at);
}

// Bounds how far the host runs ahead of the device: by as many steps as there are buffers.
absl::Status ResidentLoader::Core::WaitForLaunch(const DeviceBuffer& buffer,
                                                 const Interrupted& interrupted, AskAt ask_at) {
  if (!buffer.was_ready) return absl::OkStatus();
  return WaitFor([&] { return device_.IsDone(buffer.ready); }, interrupted, ask_at);
}

absl::StatusOr<DeviceBuffer*> ResidentLoader::Core::WaitForBuffer(const Interrupted& interrupted,
                                                                  AskAt ask_at) {
  const Clock::time_point start = Clock::now(), deadline = start + options_.patience;
  auto nap = std::min<Clock::duration>(
      {options_.patience, kResidentLook, std::max(ask_at, start) - start});  // the first one
  do {
    DeviceBuffer* const buffer =
        buffers_->Take(std::chrono::duration_cast<std::chrono::microseconds>(nap));
    nap = std::min<Clock::duration>(options_.patience, kResidentLook);
    if (buffer != nullptr) return buffer;
    if (device_.lost()) return device_.LostStatus();
    if (interrupted != nullptr && interrupted()) return WasInterrupted();
  } while (Clock::now() < deadline);
  return absl::DeadlineExceededError(
      absl::StrCat("no batch for ", options_.patience.count(), " ms: all ", buffers_->buffers(),
                   " buffers are held, by the batches of ", buffers_->Holders()));
}

PreprocessSample ResidentLoader::Core::SampleOf(uint64_t epoch, uint64_t id) const {
  const uint32_t width = options_.width, height = options_.height;
  const uint32_t stride = width * options_.channels;
  PreprocessSample sample{.pixels = nullptr,
                          .width = width,
                          .height = height,
                          .stride_bytes = stride,
                          .box = {0, 0, static_cast<double>(width), static_cast<double>(height)},
                          .mirror = false};
  if (id == kPaddingId) return sample;  // without pixels: zeros
  sample.pixels = table_ + id * image_bytes_;
  if (!options_.crop) return sample;
  const Crop crop = ChooseCrop(*options_.crop, width, height,
                               {.seed = options_.augment_seed, .epoch = epoch, .id = id});
  sample.mirror = crop.flip;
  sample.box = crop.box;
  if (crop.margin) return sample;
  // A crop of whole pixels that reads none beyond its edges: the preprocessing is given it alone.
  const auto left = static_cast<uint32_t>(crop.box.left), top = static_cast<uint32_t>(crop.box.top);
  sample.pixels += size_t{top} * stride + size_t{left} * options_.channels;
  sample.width = static_cast<uint32_t>(crop.box.right) - left;
  sample.height = static_cast<uint32_t>(crop.box.bottom) - top;
  sample.box = {0, 0, static_cast<double>(sample.width), static_cast<double>(sample.height)};
  return sample;
}

void ResidentLoader::Core::FillInfo(const ResidentStep& step, BatchInfo& info) const {
  info.epoch = epoch_;
  info.step = step_;
  info.ids.assign(step.ids.begin(), step.ids.end());
  info.labels.assign(step.host_labels.begin(), step.host_labels.end());
  info.status.assign(slots_, {});
  for (uint32_t i = 0; i < slots_; ++i) {
    if (info.ids[i] == kPaddingId) info.status[i].state = SampleState::kPadding;
  }
}

// One launch and one event, after the last use of the buffer.
absl::Status ResidentLoader::Core::Enqueue(DeviceBuffer& buffer) {
  ASSIGN_OR_RETURN(const ResidentStep step, steps_->At(epoch_, step_, *work_stream_));
  FillInfo(step, buffer.info);
  if (buffer.was_released) RETURN_IF_ERROR(device_.StreamWait(*work_stream_, buffer.released));
  const DeviceTarget into{.pixels = buffer.output, .labels = buffer.labels};
  absl::Status status = Launch(step, nullptr, into, *work_stream_);
  if (status.ok()) status = device_.RecordEvent(buffer.ready, *work_stream_);
  buffer.was_ready = status.ok();
  buffer.was_released = false;
  return status;
}

absl::Status ResidentLoader::Core::Launch(const ResidentStep& step, const StepSource* source,
                                          const DeviceTarget& target, Stream stream) {
  if (gathers()) {
    static_assert(kPaddingId == kNoRow);
    return device_.Gather({.table = table_,
                           .rows = step.rows,
                           .count = slots_,
                           .row_bytes = image_bytes_,
                           .out = static_cast<uint8_t*>(target.pixels),
                           .labels = step.labels,
                           .out_labels = target.labels,
                           .source = source},
                          stream);
  }
  return device_.Preprocess({.samples = step.samples,
                             .count = slots_,
                             .channels = options_.channels,
                             .out_width = out_width_,
                             .out_height = out_height_,
                             .filter = options_.filter,
                             .output = output_,
                             .out = target.pixels,
                             .labels = step.labels,
                             .out_labels = target.labels,
                             .source = source},
                            stream);
}

absl::Status ResidentLoader::Core::EnqueueStep(const DeviceTarget& target, Stream stream) {
  RETURN_IF_ERROR(InOwnProcess() ? absl::OkStatus() : OfAnotherProcess());
  RETURN_IF_ERROR(CheckTarget(target, slots_ * output_.Bytes(out_width_, out_height_), slots_));
  return Launch({}, steps_->source(), target, stream);
}

absl::StatusOr<std::optional<BatchInfo>> ResidentLoader::Core::NextStep(
    Stream stream, const Interrupted& interrupted, AskAt ask_at) {
  if (stats_.batches > 0 && !step_stream_) {
    return absl::FailedPreconditionError("this loader gives batches (Next), and so no steps");
  }
  if (step_stream_ && *step_stream_ != stream) {
    return absl::InvalidArgumentError("NextStep was called for another stream before");
  }
  ASSIGN_OR_RETURN(const bool has_step, HasStep());
  if (!has_step) return std::nullopt;
  RETURN_IF_ERROR(CheckNotCapturing(device_, stream));
  step_stream_ = stream;
  RETURN_IF_ERROR(WaitFor([&] { return steps_->IsReady(epoch_, step_); }, interrupted, ask_at));
  absl::StatusOr<ResidentStep> step = steps_->At(epoch_, step_, stream);
  failed_ = step.status();
  if (failed_.ok()) failed_ = steps_->Name(*step, stream);
  if (!failed_.ok()) return failed_;
  BatchInfo info;
  FillInfo(*step, info);
  Advance();
  return info;
}

absl::StatusOr<bool> ResidentLoader::Core::HasStep() {
  if (!InOwnProcess()) return OfAnotherProcess();
  if (device_.lost() && failed_.ok()) failed_ = device_.LostStatus();
  if (!failed_.ok()) return failed_;
  if (std::exchange(epoch_ended_, false)) return false;
  return options_.epochs == 0 || epoch_ < options_.epochs;
}

void ResidentLoader::Core::Advance() {
  if (++step_ == order_.steps()) {
    step_ = 0;
    ++epoch_;
    epoch_ended_ = true;
  }
  ++stats_.batches;
}

absl::StatusOr<std::optional<DeviceBatch>> ResidentLoader::Core::Next(
    const Interrupted& interrupted, AskAt ask_at) {
  if (step_stream_) {
    return absl::FailedPreconditionError("this loader gives steps (NextStep), and so no batches");
  }
  ASSIGN_OR_RETURN(const bool has_step, HasStep());
  if (!has_step) return std::nullopt;
  if (waits_ == nullptr) {
    ASSIGN_OR_RETURN(waits_, WaitForBuffer(interrupted, ask_at));
  }
  RETURN_IF_ERROR(WaitForLaunch(*waits_, interrupted, ask_at));
  RETURN_IF_ERROR(WaitFor([&] { return steps_->IsReady(epoch_, step_); }, interrupted, ask_at));
  DeviceBuffer* const buffer = std::exchange(waits_, nullptr);
  failed_ = Enqueue(*buffer);
  if (!failed_.ok()) return failed_;
  Advance();
  buffers_->SetHeld(*buffer);
  return DeviceBatch(buffers_, *buffer,
                     PixelTensor(device_, buffer->output, options_.output, slots_, out_height_,
                                 out_width_, options_.channels),
                     true);
}

ResidentStats ResidentLoader::Core::stats() const {
  ResidentStats stats = stats_;
  stats.uploaded_bytes = steps_->uploaded_bytes();
  return stats;
}

absl::StatusOr<ResidentLoader> ResidentLoader::Open(Dataset dataset, Order order, Rank rank,
                                                    const ResidentOptions& options, Device& device,
                                                    std::optional<Cursor> cursor,
                                                    const Interrupted& interrupted) {
  auto core = std::make_unique<Core>(std::move(dataset), std::move(order), rank, options, device);
  RETURN_IF_ERROR(core->Open(cursor, interrupted));
  return ResidentLoader(std::move(core));
}

ResidentLoader::ResidentLoader(std::unique_ptr<Core> core) : core_(std::move(core)) {}
ResidentLoader::ResidentLoader(ResidentLoader&&) noexcept = default;
ResidentLoader& ResidentLoader::operator=(ResidentLoader&& other) noexcept {
  std::swap(core_, other.core_);
  return *this;
}
ResidentLoader::~ResidentLoader() {
  if (core_ != nullptr && !core_->InOwnProcess()) (void)core_.release();
}

absl::StatusOr<std::optional<DeviceBatch>> ResidentLoader::Next(const Interrupted& interrupted,
                                                                AskAt ask_at) {
  return core_->Next(interrupted, ask_at);
}
absl::Status ResidentLoader::EnqueueStep(const DeviceTarget& target, Stream stream) {
  return core_->EnqueueStep(target, stream);
}
absl::StatusOr<std::optional<BatchInfo>> ResidentLoader::NextStep(Stream stream,
                                                                  const Interrupted& interrupted,
                                                                  AskAt ask_at) {
  return core_->NextStep(stream, interrupted, ask_at);
}
Cursor ResidentLoader::cursor() const { return core_->cursor(); }
ResidentStats ResidentLoader::stats() const { return core_->stats(); }

}  // namespace shardpack
