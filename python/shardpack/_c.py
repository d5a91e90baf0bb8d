"""The C interface for ctypes. Made of api/shardpack.h by update_c.py: not to be edited."""

from ctypes import c_char, c_char_p, c_double, c_float, c_int32, c_int64, c_size_t, c_uint16, c_uint32, c_uint64, c_uint8, c_void_p, POINTER, Structure

OK = 0
END = 1
WAIT = 2
INVALID = 3
NOT_FOUND = 4
OUT_OF_RANGE = 5
DATA_LOSS = 6
NO_MEMORY = 7
DENIED = 8
CANCELLED = 9
UNSUPPORTED = 10
STATE = 11
IO = 12
UNAVAILABLE = 13
INTERNAL = 14
EXISTS = 15
TIMEOUT = 16
CLASS = 0
SPLIT = 1
COLUMN_LABEL = 0
COLUMN_IMAGE = 1
COLUMN_KEY_ENDS = 2
COLUMN_KEY_TEXT = 3
COLUMN_PATH_ENDS = 4
COLUMN_PATH_TEXT = 5
COLUMN_RECORD_OFFSET = 6
COLUMN_RECORD_BYTES = 7
COLUMN_OFFSET = 8
COLUMN_BYTES = 9
COLUMN_HASH = 10
SHUFFLE = 0
SEQUENTIAL = 1
BLOCK_SHUFFLE = 2
TAIL_DROP = 0
TAIL_PAD = 1
RANDOM_RESIZED = 0
CENTER = 1
RESIZE = 2
U8 = 0
F32 = 1
F16 = 2
BF16 = 3
NHWC = 0
NCHW = 1
BILINEAR = 0
BOX = 1
BICUBIC = 2
LANCZOS = 3
AS_IMAGE = 0
AS_LABELS = 1
AS_COCO = 2
AS_COCO_LABELS = 3
OVERLAP_IGNORE = 0
OVERLAP_LAST = 1
SHARE_ALL = 0
SHARE_GEOMETRY = 1
SHARE_NONE = 2
XYXY = 0
XYWH = 1
BAD_FAIL = 0
BAD_SUBSTITUTE = 1
SAMPLE_OK = 0
SAMPLE_PADDING = 1
SAMPLE_SUBSTITUTED = 2
HOST = 1
CUDA = 2
PIXELS = 0
LABELS = 1
DECODE_BY_DEVICE = 0
DECODE_BY_AUTO = 1
DECODE_BY_HYBRID = 2
DECODE_BY_CPU = 3
PADDING_ID = 18446744073709551615
VERSION = '0.1.0'


class text(Structure):
  _fields_ = [
      ("data", c_void_p),
      ("size", c_size_t),
  ]


class error_info(Structure):
  _fields_ = [
      ("size", c_size_t),
      ("code", c_int32),
      ("system_errno", c_int32),
      ("message", text),
      ("path", text),
      ("shard", text),
      ("key", text),
      ("field", text),
      ("record", c_int64),
      ("offset", c_int64),
      ("id", c_int64),
  ]


class dataset_info(Structure):
  _fields_ = [
      ("size", c_size_t),
      ("samples", c_uint64),
      ("bytes", c_uint64),
      ("shards", c_uint32),
      ("splits", c_uint32),
      ("classes", c_uint32),
      ("reserved", c_uint32),
      ("identity", c_uint8 * 16),
      ("format", text),
  ]


class shard_info(Structure):
  _fields_ = [
      ("size", c_size_t),
      ("name", text),
      ("split", text),
      ("path", text),
      ("bytes", c_uint64),
      ("records", c_uint64),
      ("first_id", c_uint64),
  ]


class image(Structure):
  _fields_ = [
      ("width", c_uint32),
      ("height", c_uint32),
      ("format", c_uint8),
      ("color_space", c_uint8),
      ("channels", c_uint8),
      ("bits_per_channel", c_uint8),
      ("orientation", c_uint8),
      ("flags", c_uint8),
      ("reserved", c_uint16),
  ]


class column(Structure):
  _fields_ = [
      ("data", c_void_p),
      ("count", c_uint64),
      ("item_bytes", c_uint32),
      ("type", c_char),
      ("reserved", c_char * 3),
  ]


class mixture_part(Structure):
  _fields_ = [
      ("first_id", c_uint64),
      ("samples", c_uint64),
      ("weight", c_double),
  ]


class order_options(Structure):
  _fields_ = [
      ("size", c_size_t),
      ("seed", c_uint64),
      ("global_batch", c_uint32),
      ("mode", c_uint32),
      ("tail", c_uint32),
      ("block_samples", c_uint32),
      ("window_blocks", c_uint32),
      ("reserved", c_uint32),
      ("epoch_samples", c_uint64),
      ("subset", c_void_p),
      ("subset_count", c_uint64),
      ("mixture", POINTER(mixture_part)),
      ("mixture_count", c_size_t),
  ]


class decode(Structure):
  _fields_ = [
      ("size", c_size_t),
      ("width", c_uint32),
      ("height", c_uint32),
      ("crop", c_uint32),
      ("filter", c_uint32),
      ("min_scale", c_double),
      ("max_scale", c_double),
      ("min_ratio", c_double),
      ("max_ratio", c_double),
      ("shortest_side", c_uint32),
      ("channels", c_uint32),
      ("flip_probability", c_double),
      ("type", c_uint32),
      ("layout", c_uint32),
      ("mean", c_float * 3),
      ("std", c_float * 3),
      ("ignore_orientation", c_uint32),
      ("fast", c_uint32),
      ("max_pixels", c_uint64),
      ("max_scans", c_uint32),
      ("reserved", c_uint32),
  ]


class label_color(Structure):
  _fields_ = [
      ("red", c_uint8),
      ("green", c_uint8),
      ("blue", c_uint8),
      ("reserved", c_uint8),
      ("label", c_uint32),
  ]


class field_decode(Structure):
  _fields_ = [
      ("size", c_size_t),
      ("field", c_char_p),
      ("kind", c_uint32),
      ("share", c_uint32),
      ("wide_labels", c_uint32),
      ("legacy_nearest", c_uint32),
      ("ignore", c_uint32),
      ("ignore_zero", c_uint32),
      ("classes", c_uint32),
      ("box_format", c_uint32),
      ("colors", POINTER(label_color)),
      ("color_count", c_size_t),
      ("min_visible", c_double),
      ("box_from_polygon", c_uint32),
      ("polygons", c_uint32),
      ("keypoints", c_uint32),
      ("keypoint_pairs", c_uint32),
      ("pairs", c_void_p),
      ("overlap", c_uint32),
      ("reserved", c_uint32),
  ]


class image_info(Structure):
  _fields_ = [
      ("size", c_size_t),
      ("stored", image),
      ("width", c_uint32),
      ("height", c_uint32),
  ]


class mix(Structure):
  _fields_ = [
      ("size", c_size_t),
      ("mixup", c_double),
      ("cutmix", c_double),
      ("probability", c_double),
      ("cutmix_share", c_double),
      ("smoothing", c_double),
      ("group", c_uint32),
      ("classes", c_uint32),
  ]


class own_operation(Structure):
  _fields_ = [
      ("size", c_size_t),
      ("plugin", c_char_p),
      ("parameters", c_char_p),
      ("name", c_char_p),
      ("run", c_void_p),
      ("self", c_void_p),
  ]


class loader_options(Structure):
  _fields_ = [
      ("size", c_size_t),
      ("rank", c_uint32),
      ("world_size", c_uint32),
      ("cursor", c_char_p),
      ("fields", POINTER(c_char_p)),
      ("field_count", c_size_t),
      ("decode", POINTER(decode)),
      ("augment_seed", c_uint64),
      ("epochs", c_uint64),
      ("memory_bytes", c_uint64),
      ("max_bad_samples", c_uint64),
      ("bad_samples", c_uint32),
      ("threads", c_int32),
      ("io_threads", c_int32),
      ("prefetch_batches", c_uint32),
      ("no_verify", c_uint32),
      ("map_shards", c_uint32),
      ("device", c_void_p),
      ("decode_fields", POINTER(c_char_p)),
      ("decode_field_count", c_size_t),
      ("field_decodes", POINTER(POINTER(field_decode))),
      ("field_decode_count", c_size_t),
      ("augment", c_char_p),
      ("mix", POINTER(mix)),
      ("views", c_uint32),
      ("other_augment", c_uint32),
      ("own_operations", POINTER(POINTER(own_operation))),
      ("own_operation_count", c_size_t),
  ]


class batch_view(Structure):
  _fields_ = [
      ("size", c_size_t),
      ("epoch", c_uint64),
      ("step", c_uint64),
      ("slots", c_uint64),
      ("ids", c_void_p),
      ("labels", c_void_p),
      ("states", c_void_p),
      ("images", POINTER(image)),
      ("pixels", c_void_p),
      ("pixel_bytes", c_uint64),
      ("height", c_uint32),
      ("width", c_uint32),
      ("channels", c_uint32),
      ("type", c_uint32),
      ("layout", c_uint32),
      ("fields", c_uint32),
      ("device_kind", c_uint32),
      ("device_number", c_int32),
      ("device_labels", c_void_p),
      ("views", c_uint32),
      ("classes", c_uint32),
      ("soft_labels", c_void_p),
      ("partners", c_void_p),
      ("weights", c_void_p),
  ]


class span(Structure):
  _fields_ = [
      ("data", c_void_p),
      ("bytes", c_uint64),
  ]


class crop(Structure):
  _fields_ = [
      ("left", c_double),
      ("top", c_double),
      ("right", c_double),
      ("bottom", c_double),
      ("width", c_uint32),
      ("height", c_uint32),
      ("flip", c_uint32),
      ("reserved", c_uint32),
  ]


class decoded_field(Structure):
  _fields_ = [
      ("size", c_size_t),
      ("data", c_void_p),
      ("bytes", c_uint64),
      ("kind", c_uint32),
      ("label_bytes", c_uint32),
  ]


class objects(Structure):
  _fields_ = [
      ("size", c_size_t),
      ("objects", c_uint64),
      ("offsets", c_void_p),
      ("boxes", c_void_p),
      ("areas", c_void_p),
      ("labels", c_void_p),
      ("crowds", c_void_p),
      ("keep", c_void_p),
      ("keypoints", c_void_p),
      ("ring_offsets", c_void_p),
      ("point_offsets", c_void_p),
      ("polygons", c_void_p),
      ("dropped", c_uint64),
      ("outside", c_uint64),
      ("keypoints_each", c_uint32),
      ("reserved", c_uint32),
  ]


class device_info(Structure):
  _fields_ = [
      ("size", c_size_t),
      ("kind", c_uint32),
      ("number", c_int32),
      ("why_not", text),
      ("name", text),
      ("pci_bus_id", text),
      ("memory_bytes", c_uint64),
      ("free_bytes", c_uint64),
      ("compute_major", c_int32),
      ("compute_minor", c_int32),
  ]


class device_options(Structure):
  _fields_ = [
      ("size", c_size_t),
      ("prefetch_batches", c_uint32),
      ("preprocess", c_uint32),
      ("type", c_uint32),
      ("layout", c_uint32),
      ("width", c_uint32),
      ("height", c_uint32),
      ("filter", c_uint32),
      ("no_labels", c_uint32),
      ("mean", c_float * 3),
      ("std", c_float * 3),
      ("decode", POINTER(decode)),
      ("raw_bytes", c_uint64),
      ("patience_ms", c_uint64),
      ("decode_by", c_uint32),
      ("share_decoding", c_uint32),
      ("augment", c_char_p),
      ("augment_on_device_only", c_uint32),
      ("decode_regions", c_uint32),
  ]


class resident_options(Structure):
  _fields_ = [
      ("size", c_size_t),
      ("width", c_uint32),
      ("height", c_uint32),
      ("channels", c_uint32),
      ("filter", c_uint32),
      ("crop", POINTER(decode)),
      ("type", c_uint32),
      ("layout", c_uint32),
      ("mean", c_float * 3),
      ("std", c_float * 3),
      ("augment_seed", c_uint64),
      ("epochs", c_uint64),
      ("rank", c_uint32),
      ("world_size", c_uint32),
      ("cursor", c_char_p),
      ("threads", c_int32),
      ("buffers", c_uint32),
      ("share_of_memory", c_double),
  ]


class target(Structure):
  _fields_ = [
      ("size", c_size_t),
      ("pixels", c_void_p),
      ("pixel_bytes", c_uint64),
      ("labels", c_void_p),
      ("label_bytes", c_uint64),
  ]


class job_options(Structure):
  _fields_ = [
      ("size", c_size_t),
      ("folder", c_char_p),
  ]


class job_progress(Structure):
  _fields_ = [
      ("size", c_size_t),
      ("stage", text),
      ("done", c_uint64),
      ("total", c_uint64),
      ("bytes", c_uint64),
      ("total_bytes", c_uint64),
      ("seconds", c_double),
      ("seconds_left", c_double),
  ]


class writer_options(Structure):
  _fields_ = [
      ("size", c_size_t),
      ("arguments", POINTER(c_char_p)),
      ("argument_count", c_size_t),
      ("worker", c_uint32),
      ("workers", c_uint32),
      ("classes", POINTER(c_char_p)),
      ("class_count", c_size_t),
  ]


class field(Structure):
  _fields_ = [
      ("name", c_char_p),
      ("data", c_void_p),
      ("bytes", c_uint64),
  ]


class samples(Structure):
  _fields_ = [
      ("size", c_size_t),
      ("count", c_uint64),
      ("fields", POINTER(c_char_p)),
      ("field_count", c_size_t),
      ("bytes", c_void_p),
      ("byte_count", c_uint64),
      ("lengths", c_void_p),
  ]


# name: (result, arguments)
FUNCTIONS = {
    "version": (c_char_p, []),
    "build_json": (c_char_p, []),
    "code_name": (c_char_p, [c_int32]),
    "error_code": (c_int32, [c_void_p]),
    "error_message": (c_char_p, [c_void_p]),
    "error_info_of": (c_int32, [c_void_p, POINTER(error_info)]),
    "error_free": (None, [c_void_p]),
    "text_free": (None, [c_char_p]),
    "dataset_open": (c_int32, [c_char_p, POINTER(c_void_p), POINTER(c_void_p)]),
    "dataset_open_shards": (c_int32, [POINTER(c_char_p), c_size_t, POINTER(c_void_p), POINTER(c_void_p)]),
    "dataset_join": (c_int32, [POINTER(c_void_p), c_size_t, POINTER(c_void_p), POINTER(c_void_p)]),
    "dataset_split": (c_int32, [c_void_p, c_char_p, POINTER(c_void_p), POINTER(c_void_p)]),
    "dataset_select": (c_int32, [c_void_p, c_void_p, c_size_t, POINTER(c_void_p), POINTER(c_void_p)]),
    "dataset_retain": (c_void_p, [c_void_p]),
    "dataset_release": (None, [c_void_p]),
    "dataset_info_of": (c_int32, [c_void_p, POINTER(dataset_info), POINTER(c_void_p)]),
    "dataset_shard": (c_int32, [c_void_p, c_uint32, POINTER(shard_info), POINTER(c_void_p)]),
    "dataset_name": (c_int32, [c_void_p, c_uint32, c_uint32, POINTER(text), POINTER(c_void_p)]),
    "dataset_fields": (c_int32, [c_void_p, c_uint32, POINTER(text), c_size_t, c_void_p, POINTER(c_void_p)]),
    "dataset_column": (c_int32, [c_void_p, c_uint32, c_uint32, c_char_p, POINTER(column), POINTER(c_void_p)]),
    "dataset_locate": (c_int32, [c_void_p, c_uint64, c_void_p, c_void_p, POINTER(c_void_p)]),
    "dataset_key": (c_int32, [c_void_p, c_uint64, POINTER(text), POINTER(c_void_p)]),
    "dataset_find_key": (c_int32, [c_void_p, c_char_p, c_size_t, c_void_p, POINTER(c_void_p)]),
    "dataset_read": (c_int32, [c_void_p, c_void_p, c_size_t, POINTER(c_char_p), c_size_t, POINTER(c_void_p), POINTER(c_void_p)]),
    "dataset_map_shards": (c_int32, [c_void_p, c_uint32, POINTER(c_void_p)]),
    "arrow_release_schema": (None, [c_void_p]),
    "arrow_release_array": (None, [c_void_p]),
    "arrow_release_stream": (None, [c_void_p]),
    "order_make": (c_int32, [c_uint64, POINTER(order_options), POINTER(c_void_p), POINTER(c_void_p)]),
    "order_retain": (c_void_p, [c_void_p]),
    "order_release": (None, [c_void_p]),
    "order_steps": (c_uint64, [c_void_p]),
    "order_samples": (c_uint64, [c_void_p]),
    "order_ids": (c_int32, [c_void_p, c_uint64, c_uint64, c_uint32, c_void_p, c_size_t, POINTER(c_void_p)]),
    "order_explain": (c_char_p, [c_void_p]),
    "decode_check": (c_int32, [POINTER(decode), POINTER(c_void_p)]),
    "image_info_of": (c_int32, [c_void_p, c_uint64, c_uint64, POINTER(image_info), POINTER(c_void_p)]),
    "image_decode": (c_int32, [c_void_p, c_uint64, POINTER(image), c_uint32, c_void_p, c_uint64, POINTER(c_void_p)]),
    "augment_check": (c_int32, [c_char_p, POINTER(c_char_p), c_void_p, POINTER(c_void_p)]),
    "augment_draw": (c_int32, [c_char_p, c_uint64, c_uint64, c_uint64, c_uint32, c_uint32, c_uint32, POINTER(c_char_p), POINTER(c_void_p)]),
    "program_apply": (c_int32, [c_char_p, c_void_p, c_uint32, c_uint32, c_uint32, c_uint64, POINTER(c_void_p)]),
    "plugin_name": (c_int32, [c_char_p, c_char_p, POINTER(c_char_p), POINTER(c_void_p)]),
    "loader_open": (c_int32, [c_void_p, c_void_p, POINTER(loader_options), POINTER(c_void_p), POINTER(c_void_p)]),
    "loader_next": (c_int32, [c_void_p, c_int64, POINTER(c_void_p), POINTER(c_void_p)]),
    "loader_seek": (c_int32, [c_void_p, c_uint64, c_uint64, POINTER(c_void_p)]),
    "loader_cursor": (c_int32, [c_void_p, POINTER(c_char_p), POINTER(c_void_p)]),
    "loader_position": (c_int32, [c_void_p, c_void_p, c_void_p, POINTER(c_void_p)]),
    "loader_stats_json": (c_int32, [c_void_p, POINTER(c_char_p), POINTER(c_void_p)]),
    "loader_explain": (c_int32, [c_void_p, POINTER(c_char_p), POINTER(c_void_p)]),
    "loader_take_bad_samples_json": (c_int32, [c_void_p, POINTER(c_char_p), POINTER(c_void_p)]),
    "loader_stop": (None, [c_void_p]),
    "loader_close": (c_int32, [c_void_p, c_int64, POINTER(c_void_p)]),
    "loader_release": (None, [c_void_p]),
    "batch_retain": (c_void_p, [c_void_p]),
    "batch_release": (None, [c_void_p]),
    "batch_view_of": (c_int32, [c_void_p, POINTER(batch_view), POINTER(c_void_p)]),
    "batch_field": (c_int32, [c_void_p, c_uint32, POINTER(text), POINTER(c_void_p)]),
    "batch_spans": (c_int32, [c_void_p, c_char_p, POINTER(span), c_size_t, POINTER(c_void_p)]),
    "batch_masks": (c_int32, [c_void_p, c_char_p, POINTER(c_void_p), c_void_p, POINTER(c_void_p)]),
    "batch_crops": (c_int32, [c_void_p, POINTER(crop), c_size_t, POINTER(c_void_p)]),
    "batch_program": (c_int32, [c_void_p, c_size_t, c_uint32, POINTER(c_char_p), POINTER(c_void_p)]),
    "batch_affine": (c_int32, [c_void_p, c_void_p, c_size_t, POINTER(c_void_p)]),
    "batch_projection": (c_int32, [c_void_p, c_void_p, c_size_t, POINTER(c_void_p)]),
    "batch_decoded": (c_int32, [c_void_p, c_char_p, POINTER(decoded_field), POINTER(c_void_p)]),
    "batch_objects": (c_int32, [c_void_p, POINTER(objects), POINTER(c_void_p)]),
    "batch_why": (c_int32, [c_void_p, c_size_t, c_void_p, POINTER(text), POINTER(c_void_p)]),
    "batch_dlpack": (c_int32, [c_void_p, c_uint32, c_uint32, POINTER(c_void_p), POINTER(c_void_p)]),
    "device_open": (c_int32, [c_char_p, POINTER(c_void_p), POINTER(c_void_p)]),
    "device_retain": (c_void_p, [c_void_p]),
    "device_release": (None, [c_void_p]),
    "device_info_of": (c_int32, [c_void_p, POINTER(device_info), POINTER(c_void_p)]),
    "loader_to_device": (c_int32, [c_void_p, c_void_p, POINTER(device_options), POINTER(c_void_p), POINTER(c_void_p)]),
    "resident_open": (c_int32, [c_void_p, c_void_p, c_void_p, POINTER(resident_options), POINTER(c_void_p), POINTER(c_void_p)]),
    "loader_opened": (c_int32, [c_void_p, c_int64, POINTER(c_void_p)]),
    "loader_next_into": (c_int32, [c_void_p, c_int64, POINTER(target), c_void_p, POINTER(c_void_p), POINTER(c_void_p)]),
    "loader_enqueue_step": (c_int32, [c_void_p, POINTER(target), c_void_p, POINTER(c_void_p)]),
    "loader_next_step": (c_int32, [c_void_p, c_int64, c_void_p, POINTER(c_void_p), POINTER(c_void_p)]),
    "batch_wait_on": (c_int32, [c_void_p, c_void_p, POINTER(c_void_p)]),
    "batch_synchronize": (c_int32, [c_void_p, c_int64, POINTER(c_void_p)]),
    "batch_release_on": (c_int32, [c_void_p, c_void_p, POINTER(c_void_p)]),
    "job_start": (c_int32, [POINTER(c_char_p), c_size_t, POINTER(job_options), POINTER(c_void_p), POINTER(c_void_p)]),
    "job_poll": (c_int32, [c_void_p, c_int64, POINTER(job_progress), POINTER(c_void_p)]),
    "job_cancel": (None, [c_void_p]),
    "job_exit_code": (c_int32, [c_void_p]),
    "job_result_json": (c_int32, [c_void_p, POINTER(c_char_p), POINTER(c_void_p)]),
    "job_release": (None, [c_void_p]),
    "writer_open": (c_int32, [c_char_p, POINTER(writer_options), POINTER(c_void_p), POINTER(c_void_p)]),
    "writer_add": (c_int32, [c_void_p, c_char_p, c_size_t, c_char_p, POINTER(field), c_size_t, POINTER(c_void_p)]),
    "writer_add_many": (c_int32, [c_void_p, POINTER(samples), POINTER(c_void_p)]),
    "writer_has": (c_int32, [c_void_p, c_char_p, c_size_t, POINTER(c_void_p)]),
    "writer_flush": (c_int32, [c_void_p, POINTER(c_void_p)]),
    "writer_finish": (c_int32, [c_void_p, POINTER(c_void_p), POINTER(c_void_p)]),
    "writer_release": (None, [c_void_p]),
}
