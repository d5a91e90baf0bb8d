#include "cuda/loading/resident_loader.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cuda/loading/uploader.h"
#include "formats/io/status_macros.h"
#include "readers/loading/loader.h"

namespace shardpack {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kUploads = 8;  // small copies: the host runs well ahead of the device
constexpr uint32_t kFillBatch = 256;
constexpr std::chrono::microseconds kNap{100};

// How often who waits asks whether it is interrupted.
constexpr std::chrono::milliseconds kLook{50};

absl::Status WasInterrupted() {
  return absl::CancelledError("waiting for a batch was interrupted");
}

}  // namespace

class ResidentLoader::Core {
 public:
  Core(Dataset dataset, Order order, Rank rank, const ResidentOptions& options,
       const DeviceApi& api)
      : api_(api),
        options_(options),
        dataset_(std::move(dataset)),
        order_(std::move(order)),
        rank_(rank),
        slots_(rank.slots(order_.spec().global_batch)),
        out_width_(options.crop ? options.crop->width : options.width),
        out_height_(options.crop ? options.crop->height : options.height),
        image_bytes_(size_t{options.width} * options.height * options.channels),
        output_(options.output, options.channels),
        memory_(api, {.log = options.log}) {}
  ~Core();

  absl::Status Open(const std::optional<Cursor>& cursor, const Interrupted& interrupted);
  absl::StatusOr<std::optional<DeviceBatch>> Next(const Interrupted& interrupted);
  Cursor cursor() const { return MakeCursor(dataset_.identity(), order_, epoch_, step_); }
  ResidentStats stats() const;
  bool InOwnProcess() const { return ::getpid() == process_; }

 private:
  bool gathers() const { return !options_.crop && output_.plain(); }
  absl::Status Reserve();
  absl::Status Fill(const Interrupted& interrupted);
  absl::Status FillFrom(Loader& loader, const Interrupted& interrupted);
  absl::Status WaitForUploads(size_t at_most, const Interrupted& interrupted);
  absl::StatusOr<DeviceBuffer*> WaitForBuffer(const Interrupted& interrupted);
  PreprocessSample SampleOf(uint64_t id) const;
  void FillInfo(BatchInfo& info) const;
  absl::Status Enqueue(DeviceBuffer& buffer);

  const DeviceApi& api_;
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
  Stream work_stream_ = nullptr;
  bool has_work_stream_ = false;
  uint8_t* table_ = nullptr;     // a row an image, on the device
  std::vector<int64_t> labels_;  // of all images
  uint64_t epoch_ = 0, step_ = 0;
  bool epoch_ended_ = false;
  absl::Status failed_;
  ResidentStats stats_;
};

ResidentLoader::Core::~Core() {
  uploader_.reset();
  const bool idle = !has_work_stream_ || WaitUntilIdle(api_, work_stream_, std::chrono::seconds(5));
  if (!idle || IsLost(api_)) return;  // the device may still use it all
  if (table_ != nullptr) (void)Checked(api_, api_.free(api_.self, table_), "");
  if (has_work_stream_ && !IsLost(api_))
    (void)Checked(api_, api_.stream_destroy(api_.self, work_stream_), "");
}

absl::Status ResidentLoader::Core::Reserve() {
  const uint64_t bytes = dataset_.size() * image_bytes_;
  uint64_t free_bytes = 0, total_bytes = 0;
  absl::Status status = Checked(api_, api_.memory_info(api_.self, &free_bytes, &total_bytes),
                                "asking for the device's memory");
  if (!status.ok()) return status;
  const auto most =
      static_cast<uint64_t>(static_cast<double>(free_bytes) * options_.share_of_memory);
  if (bytes > most) {
    return absl::ResourceExhaustedError(absl::StrCat(
        dataset_.size(), " images of ", image_bytes_, " bytes take ", bytes, " bytes; ", most,
        " of the device's free memory may be used: use DeviceLoader,"
        " or keep smaller images"));
  }
  void* table = nullptr;
  status = Checked(api_, api_.allocate(api_.self, &table, bytes),
                   absl::StrCat("allocating ", bytes, " bytes for the images"));
  if (status.ok()) table_ = static_cast<uint8_t*>(table);
  stats_.images = dataset_.size();
  stats_.image_bytes = bytes;
  return status;
}

absl::Status ResidentLoader::Core::FillFrom(Loader& loader, const Interrupted& interrupted) {
  for (;;) {
    absl::Status status = WaitForUploads(1, interrupted);  // the Loader needs its memory
    if (!status.ok()) return status;
    ASSIGN_OR_RETURN(std::optional<HostBatch> batch, loader.Next(interrupted));
    if (!batch.has_value()) return absl::OkStatus();
    const std::span<const uint64_t> ids = batch->ids();
    const auto padding = std::find(ids.begin(), ids.end(), kPaddingId);
    const auto images = static_cast<size_t>(padding - ids.begin());
    std::copy_n(batch->labels().begin(), images, labels_.begin() + static_cast<ptrdiff_t>(ids[0]));
    const UploadCopy copy{batch->pixels()->bytes.data(), table_ + ids[0] * image_bytes_,
                          images * image_bytes_};
    Event copied = nullptr;
    status = uploader_->Upload(*std::move(batch), std::span(&copy, 1), {}, &copied);
    if (!status.ok()) return status;
  }
}

// In the order of ids, so that a batch is one copy.
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
    status = Checked(api_, api_.stream_synchronize(api_.self, uploader_->stream()),
                     "waiting for the images to be on the device");
  }
  if (status.ok()) status = uploader_->Reclaim();
  stats_.fill_seconds = std::chrono::duration<double>(Clock::now() - start).count();
  stats_.uploaded_bytes = uploader_->uploaded_bytes();  // taken off by stats()
  return status;
}

absl::Status ResidentLoader::Core::Open(const std::optional<Cursor>& cursor,
                                        const Interrupted& interrupted) {
  absl::Status status = CheckRank(rank_, order_.spec().global_batch);
  if (!status.ok()) return status;
  if (options_.width == 0 || options_.height == 0) {
    return absl::InvalidArgumentError("resident images need a width and a height");
  }
  if (order_.spec().samples != dataset_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("the order is of ", order_.spec().samples,
                                                   " samples, the dataset has ", dataset_.size()));
  }
  if (options_.crop) status = CheckCropOptions(*options_.crop);
  if (!status.ok()) return status;
  if (cursor) {
    status = CheckCursor(*cursor, dataset_.identity(), order_);
    if (!status.ok()) return status;
    const bool at_end = cursor->step == order_.steps();
    epoch_ = cursor->epoch + (at_end ? 1 : 0);
    step_ = at_end ? 0 : cursor->step;
  }
  status = Reserve();
  if (!status.ok()) return status;
  status = Checked(api_, api_.stream_create(api_.self, &work_stream_), "making a stream");
  has_work_stream_ = status.ok();
  if (!status.ok()) return status;
  ASSIGN_OR_RETURN(
      buffers_,
      DeviceBuffers::Create(api_, {.buffers = options_.buffers,
                                   .slots = slots_,
                                   .pixel_bytes = slots_ * output_.Bytes(out_width_, out_height_),
                                   .samples = !gathers(),
                                   .rows = gathers()}));
  const size_t side_bytes = DeviceAligned(slots_ * sizeof(int64_t)) +
                            slots_ * (gathers() ? sizeof(uint64_t) : sizeof(PreprocessSample));
  ASSIGN_OR_RETURN(uploader_, Uploader::Create(api_, kUploads, side_bytes, memory_));
  return Fill(interrupted);
}

absl::Status ResidentLoader::Core::WaitForUploads(size_t at_most, const Interrupted& interrupted) {
  const Clock::time_point deadline = Clock::now() + options_.patience;
  Clock::time_point look = Clock::now() + kLook;
  for (;;) {
    absl::Status status = uploader_->Reclaim();
    if (!status.ok() || uploader_->in_flight() <= at_most) return status;
    if (Clock::now() >= deadline) {
      return absl::DeadlineExceededError(absl::StrCat(
          "the device has not begun a batch for ", options_.patience.count(),
          " ms; it waits for the stream that an earlier batch was released on, or hangs"));
    }
    if (interrupted != nullptr && Clock::now() >= look) {
      if (interrupted()) return WasInterrupted();
      look = Clock::now() + kLook;
    }
    std::this_thread::sleep_for(kNap);
  }
}

absl::StatusOr<DeviceBuffer*> ResidentLoader::Core::WaitForBuffer(const Interrupted& interrupted) {
  const Clock::time_point deadline = Clock::now() + options_.patience;
  do {
    DeviceBuffer* const buffer = buffers_->Take(std::min(options_.patience, kLook));
    if (buffer != nullptr) return buffer;
    if (IsLost(api_)) return LostStatus(api_);
    if (interrupted != nullptr && interrupted()) return WasInterrupted();
  } while (Clock::now() < deadline);
  return absl::DeadlineExceededError(
      absl::StrCat("no batch for ", options_.patience.count(), " ms: all ", buffers_->buffers(),
                   " buffers are held, by the batches of ", buffers_->Holders()));
}

PreprocessSample ResidentLoader::Core::SampleOf(uint64_t id) const {
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
                               {.seed = options_.augment_seed, .epoch = epoch_, .id = id});
  sample.mirror = crop.flip;
  sample.box = crop.box;
  if (crop.margin) return sample;
  // Whole pixels, and none around them: cut first.
  const auto left = static_cast<uint32_t>(crop.box.left), top = static_cast<uint32_t>(crop.box.top);
  sample.pixels += size_t{top} * stride + size_t{left} * options_.channels;
  sample.width = static_cast<uint32_t>(crop.box.right) - left;
  sample.height = static_cast<uint32_t>(crop.box.bottom) - top;
  sample.box = {0, 0, static_cast<double>(sample.width), static_cast<double>(sample.height)};
  return sample;
}

void ResidentLoader::Core::FillInfo(BatchInfo& info) const {
  info.epoch = epoch_;
  info.step = step_;
  info.ids.resize(slots_);
  order_.Ids(epoch_, step_, rank_.first_slot(order_.spec().global_batch), info.ids);
  info.labels.assign(slots_, kNoLabel);
  info.status.assign(slots_, {});
  for (uint32_t i = 0; i < slots_; ++i) {
    if (info.ids[i] == kPaddingId) {
      info.status[i].state = SampleState::kPadding;
    } else {
      info.labels[i] = labels_[info.ids[i]];
    }
  }
}

absl::Status ResidentLoader::Core::Enqueue(DeviceBuffer& buffer) {
  FillInfo(buffer.info);
  std::byte* const side = uploader_->side().data();
  std::byte* const parameters = side + DeviceAligned(slots_ * sizeof(int64_t));
  std::memcpy(side, buffer.info.labels.data(), slots_ * sizeof(int64_t));
  std::vector<UploadCopy> copies = {{side, buffer.labels, slots_ * sizeof(int64_t)}};
  if (gathers()) {
    static_assert(kPaddingId == kNoRow);
    std::memcpy(parameters, buffer.info.ids.data(), slots_ * sizeof(uint64_t));
    copies.push_back({parameters, buffer.rows, slots_ * sizeof(uint64_t)});
  } else {
    for (uint32_t i = 0; i < slots_; ++i) {
      const PreprocessSample sample = SampleOf(buffer.info.ids[i]);
      std::memcpy(parameters + i * sizeof(sample), &sample, sizeof(sample));
    }
    copies.push_back({parameters, buffer.samples, slots_ * sizeof(PreprocessSample)});
  }
  Event copied = nullptr;
  absl::Status status = uploader_->Upload(std::nullopt, copies, buffers_->Before(buffer), &copied);
  if (status.ok()) {
    status = Checked(api_, api_.stream_wait(api_.self, work_stream_, copied),
                     "making a batch wait for its parameters");
  }
  if (!status.ok()) return status;
  const DeviceStatus launched = gathers() ? api_.gather(api_.self,
                                                        {.table = table_,
                                                         .rows = buffer.rows,
                                                         .count = slots_,
                                                         .row_bytes = image_bytes_,
                                                         .out = buffer.output},
                                                        work_stream_)
                                          : api_.preprocess(api_.self,
                                                            {.samples = buffer.samples,
                                                             .count = slots_,
                                                             .channels = options_.channels,
                                                             .out_width = out_width_,
                                                             .out_height = out_height_,
                                                             .filter = options_.filter,
                                                             .output = output_,
                                                             .out = buffer.output},
                                                            work_stream_);
  status = Checked(api_, launched, "starting the gathering of a batch");
  if (status.ok()) {
    status = Checked(api_, api_.event_record(api_.self, buffer.ready, work_stream_),
                     "recording that a batch is ready");
  }
  buffer.was_ready = status.ok();
  buffer.was_released = false;
  return status;
}

absl::StatusOr<std::optional<DeviceBatch>> ResidentLoader::Core::Next(
    const Interrupted& interrupted) {
  if (!InOwnProcess()) {
    return absl::FailedPreconditionError(
        "the loader was opened in another process: a device does not survive a fork; open it "
        "after");
  }
  if (IsLost(api_) && failed_.ok()) failed_ = LostStatus(api_);
  if (!failed_.ok()) return failed_;
  if (epoch_ended_) {
    epoch_ended_ = false;
    return std::nullopt;
  }
  if (options_.epochs > 0 && epoch_ >= options_.epochs) return std::nullopt;
  RETURN_IF_ERROR(WaitForUploads(kUploads - 1, interrupted));
  ASSIGN_OR_RETURN(DeviceBuffer * buffer, WaitForBuffer(interrupted));
  failed_ = Enqueue(*buffer);
  if (!failed_.ok()) return failed_;
  if (++step_ == order_.steps()) {
    step_ = 0;
    ++epoch_;
    epoch_ended_ = true;
  }
  ++stats_.batches;
  buffers_->SetHeld(*buffer);
  return DeviceBatch(buffers_, *buffer,
                     PixelTensor(api_, buffer->output, options_.output, slots_, out_height_,
                                 out_width_, options_.channels),
                     true);
}

ResidentStats ResidentLoader::Core::stats() const {
  ResidentStats stats = stats_;
  stats.uploaded_bytes = uploader_->uploaded_bytes() - stats_.uploaded_bytes;
  return stats;
}

absl::StatusOr<ResidentLoader> ResidentLoader::Open(Dataset dataset, Order order, Rank rank,
                                                    const ResidentOptions& options,
                                                    const DeviceApi& api,
                                                    std::optional<Cursor> cursor,
                                                    const Interrupted& interrupted) {
  auto core = std::make_unique<Core>(std::move(dataset), std::move(order), rank, options, api);
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

absl::StatusOr<std::optional<DeviceBatch>> ResidentLoader::Next(const Interrupted& interrupted) {
  return core_->Next(interrupted);
}
Cursor ResidentLoader::cursor() const { return core_->cursor(); }
ResidentStats ResidentLoader::stats() const { return core_->stats(); }

}  // namespace shardpack
