/* shardpack.h: packed datasets, read in exact order, verified and decoded, from C and every
 * language that can call C. Needs C99 or C++11; link with -lshardpack.
 *
 *   shardpack_error* error = NULL;
 *   shardpack_dataset* dataset = NULL;
 *   shardpack_dataset_open("shards", &dataset, &error);
 *   shardpack_dataset_info info = {.size = sizeof info};
 *   shardpack_dataset_info_of(dataset, &info, &error);
 *   shardpack_order_options how = {.size = sizeof how, .global_batch = 256};
 *   shardpack_order* order = NULL;
 *   shardpack_order_make(info.samples, &how, &order, &error);
 *   shardpack_loader* loader = NULL;
 *   shardpack_loader_open(dataset, order, NULL, &loader, &error);
 *   shardpack_batch* batch = NULL;
 *   while (shardpack_loader_next(loader, -1, &batch, &error) == SHARDPACK_OK) {  // one epoch
 *     shardpack_batch_view view = {.size = sizeof view};
 *     shardpack_batch_view_of(batch, &view, &error);
 *     use(view.slots, view.labels);
 *     shardpack_batch_release(batch);
 *   }
 *   shardpack_loader_release(loader);
 *   shardpack_order_release(order);
 *   shardpack_dataset_release(dataset);
 *
 * Errors: a function that can fail returns a shardpack_code. Its last argument, unless NULL,
 * receives an error object, for shardpack_error_free, if the code is SHARDPACK_INVALID or above,
 * and NULL otherwise (or if there is no memory for the object). A result is written only with
 * SHARDPACK_OK, and is NULL otherwise, except where a function says so. Nothing aborts, no C++
 * exception leaves the library, and a NULL argument is SHARDPACK_INVALID, not a crash.
 *
 * Ownership: functions that make a handle return one reference; `_retain` adds one, `_release`
 * gives one back and accepts NULL. Handles keep what they need alive, so they may be released in
 * any order. What a function borrows from its arguments, it borrows until it returns.
 *
 * Text: a shardpack_text is bytes, not terminated and not always UTF-8 (paths and keys are what the
 * file system had). Each function says how long its text is valid. A `char*` that is returned
 * through an argument is terminated and is freed with shardpack_text_free.
 *
 * Structs: those that begin with `size` may grow in later versions; set it to sizeof (less than the
 * first version has, more than 65536 and what is no multiple of 8 is SHARDPACK_INVALID; the size of
 * another struct cannot be told from that of another version). Options that are zero have their
 * defaults, and a NULL for a struct of options means all defaults, except for
 * shardpack_decode_check. The library reads and writes no more than `size` bytes; members that it
 * does not know yet must be zero in options, and become zero in results. Structs without `size`
 * never change. Later versions of this library only add functions, members at the end and values of
 * enumerations, unless the number in libshardpack.so.0 changes.
 *
 * Waiting: functions with `wait_ms` wait at most for so many milliseconds (-1: without limit, 0:
 * not at all; less is SHARDPACK_INVALID) and then return SHARDPACK_WAIT; nothing is lost, call
 * again. Loops of short waits let a program react to signals and cancellation. Functions without it
 * do not wait for other threads, but those that read or write files take as long as the files do;
 * except shardpack_job_release (12 seconds at most), shardpack_loader_release (2 seconds),
 * shardpack_loader_to_device (for calls of other threads on the loader), shardpack_batch_wait_on
 * with the stream -1 (without limit), and shardpack_job_start and shardpack_writer_finish (10
 * seconds for each program that is asked for its version).
 *
 * Threads: datasets, orders, batches, devices and errors may be used by any number of threads at
 * once; handles must not be released while another thread still uses that reference. One thread at
 * a time may call shardpack_loader_next, _next_into and _seek on a loader, shardpack_job_poll on a
 * job, and any of the functions of a writer on that writer, shardpack_writer_flush, _has and
 * _finish among them; other exceptions are noted below.
 *
 * Fork: datasets, orders and batches in host memory work in parent and child. A loader works only
 * in the process that opened it; in a child its functions return SHARDPACK_STATE and its release
 * does nothing, not even for a leak checker. So it is with jobs and writers, which are the parent's
 * (the exit code of a job is -1), and with a device that was opened before. Of a batch on a device,
 * or in the page-locked memory of a loader with a device, the child has ids, labels and states.
 *
 * Process: the library changes no signal handler (but see shardpack_loader_options.map_shards and
 * shardpack_dataset_map_shards), locale, environment, umask or working folder, prints nothing,
 * starts nothing when it is loaded and waits for nothing when the program exits. It cannot be
 * unloaded: dlclose has no effect.
 *
 * Units: bytes, unless a name says otherwise. Ids, steps, slots, shards and records count from 0. A
 * sample's id is its number in the dataset, shard after shard. */
#ifndef SHARDPACK_H_
#define SHARDPACK_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SHARDPACK_API __attribute__((visibility("default")))
#else
#define SHARDPACK_API
#endif

/* Of this header; shardpack_version() has that of the library. */
#define SHARDPACK_VERSION "0.1.0"

/* ------------------------------------------------------------------------- version and errors */

typedef int32_t shardpack_code;
enum {
  SHARDPACK_OK = 0,
  SHARDPACK_END = 1,          /* of an epoch; the next call begins the next one */
  SHARDPACK_WAIT = 2,         /* wait_ms passed: call again */
  SHARDPACK_INVALID = 3,      /* an argument, option or cursor that is wrong or does not fit */
  SHARDPACK_NOT_FOUND = 4,    /* a file, key, split or field */
  SHARDPACK_OUT_OF_RANGE = 5, /* an id, shard, slot or record past the end */
  SHARDPACK_DATA_LOSS = 6,    /* bytes that are damaged, missing or not those that were packed */
  SHARDPACK_NO_MEMORY = 7,    /* memory, page-locked memory, threads, disk space */
  SHARDPACK_DENIED = 8,       /* permissions */
  SHARDPACK_CANCELLED = 9,    /* stopped */
  SHARDPACK_UNSUPPORTED = 10, /* by this build, format, machine or kind of handle */
  SHARDPACK_STATE = 11,       /* not now: after a fork, after a release or hand-over, out of turn */
  SHARDPACK_IO = 12,          /* any other error of the system; see system_errno */
  SHARDPACK_UNAVAILABLE = 13, /* a device that is lost or cannot be used */
  SHARDPACK_INTERNAL = 14,    /* a defect of the library */
  SHARDPACK_EXISTS = 15,      /* what would be written is there already */
  SHARDPACK_TIMEOUT = 16      /* a device or consumer did not answer in time */
};

typedef struct shardpack_text {
  const char* data; /* never NULL */
  size_t size;
} shardpack_text;

typedef struct shardpack_error shardpack_error;

/* What is known about an error; unknown text is empty. Text is valid as long as the error. */
typedef struct shardpack_error_info {
  size_t size;
  shardpack_code code;
  int32_t system_errno;   /* 0: not an error of the system */
  shardpack_text message; /* for people; bytes that a terminal would interpret are escaped */
  shardpack_text path;    /* of the file, as it is */
  shardpack_text shard, key, field;
  int64_t record, offset, id; /* -1: unknown */
} shardpack_error_info;

/* "0.1.0". Static. */
SHARDPACK_API const char* shardpack_version(void);
/* A JSON object: version, compiler, debug, cuda. Static. */
SHARDPACK_API const char* shardpack_build_json(void);
/* "DATA_LOSS"; "UNKNOWN" for a number that is not a code. Static. */
SHARDPACK_API const char* shardpack_code_name(shardpack_code code);

/* NULL is an error without facts: SHARDPACK_OK and empty texts. */
SHARDPACK_API shardpack_code shardpack_error_code(const shardpack_error* error);
/* Terminated; valid as long as the error. */
SHARDPACK_API const char* shardpack_error_message(const shardpack_error* error);
SHARDPACK_API shardpack_code shardpack_error_info_of(const shardpack_error* error,
                                                     shardpack_error_info* info);
SHARDPACK_API void shardpack_error_free(shardpack_error* error);

/* Frees a `char*` that the library returned through an argument. */
SHARDPACK_API void shardpack_text_free(char* text);

/* ----------------------------------------------------------------------------------- datasets */

typedef struct shardpack_dataset shardpack_dataset;
typedef struct shardpack_batch shardpack_batch;

typedef struct shardpack_dataset_info {
  size_t size;
  uint64_t samples;
  uint64_t bytes; /* of all shards */
  uint32_t shards, splits, classes;
  uint32_t reserved;
  uint8_t identity[16];  /* what was packed: the same for equal shards, whatever their folder */
  shardpack_text format; /* "webdataset"; valid as long as the dataset */
} shardpack_dataset_info;

typedef struct shardpack_shard_info {
  size_t size;
  shardpack_text name, split; /* split: empty if there is none; valid as long as the dataset */
  shardpack_text path;        /* of the file that record and field offsets refer to */
  uint64_t bytes, records, first_id;
} shardpack_shard_info;

/* What shardpack_dataset_name names. */
enum { SHARDPACK_CLASS = 0, SHARDPACK_SPLIT = 1 };

/* What the headers of an encoded image say, as shards' indexes hold it. */
typedef struct shardpack_image {
  uint32_t width, height; /* as stored, before the orientation is applied; 0: unknown */
  uint8_t format;         /* 0 unknown, 1 JPEG, 2 PNG, 3 WebP, 4 GIF, 5 BMP, 6 TIFF, 7 raw */
  uint8_t color_space;    /* 0 unknown, 1 gray, 2 gray and alpha, 3 RGB, 4 RGBA, 5 palette, 6 CMYK,
                             7 YCCK */
  uint8_t channels, bits_per_channel;
  uint8_t orientation; /* EXIF, 1..8 */
  uint8_t flags;       /* 1 progressive, 2 animated, 4 alpha, 8 truncated */
  uint16_t reserved;
} shardpack_image;

/* Columns of a shard's index, one row a record unless noted. */
enum {
  SHARDPACK_COLUMN_LABEL = 0,         /* int64, -1: none */
  SHARDPACK_COLUMN_IMAGE = 1,         /* shardpack_image */
  SHARDPACK_COLUMN_KEY_ENDS = 2,      /* uint64: where the record's key ends in KEY_TEXT; it begins
                                         where the one before it ends */
  SHARDPACK_COLUMN_KEY_TEXT = 3,      /* bytes */
  SHARDPACK_COLUMN_PATH_ENDS = 4,     /* the same for the paths that the samples came from */
  SHARDPACK_COLUMN_PATH_TEXT = 5,     /* bytes */
  SHARDPACK_COLUMN_RECORD_OFFSET = 6, /* uint64: of the whole container record */
  SHARDPACK_COLUMN_RECORD_BYTES = 7,  /* uint64 */
  SHARDPACK_COLUMN_OFFSET = 8,        /* uint64: of the field; UINT64_MAX: the record lacks it */
  SHARDPACK_COLUMN_BYTES = 9,         /* uint64: of the field */
  SHARDPACK_COLUMN_HASH = 10          /* uint64: XXH3-64 of the field */
};

typedef struct shardpack_column {
  const void* data; /* read-only, 8-byte aligned, little-endian */
  uint64_t count;
  uint32_t item_bytes;
  char type; /* 'q' int64, 'Q' uint64, 'B' bytes, 'V' shardpack_image */
  char reserved[3];
} shardpack_column;

/* Opens the folder that `pack` made (it has a manifest.json), or a single shard of another program
 * as shardpack_dataset_open_shards does. Shards' indexes are read and verified when they are first
 * needed. DATA_LOSS if a shard is missing or has another size than packed, UNSUPPORTED if another
 * version of pack has made the folder. Whatever reads from it
 * later fails with STATE if the folder was replaced, removed or renamed before its files were
 * opened. A relative path is that of the working folder of this call. */
SHARDPACK_API shardpack_code shardpack_dataset_open(const char* path, shardpack_dataset** dataset,
                                                    shardpack_error** error);
/* Opens shards that other programs wrote, in this order; each is read completely. This library
 * reads those of WebDataset, TFRecord and NumPy; `pack convert` and `pack index` know
 * all formats. */
SHARDPACK_API shardpack_code shardpack_dataset_open_shards(const char* const* paths, size_t count,
                                                           shardpack_dataset** dataset,
                                                           shardpack_error** error);
/* The samples of one dataset after the other, renumbered from 0. INVALID if their classes differ.
 */
SHARDPACK_API shardpack_code shardpack_dataset_join(const shardpack_dataset* const* parts,
                                                    size_t count, shardpack_dataset** dataset,
                                                    shardpack_error** error);
/* The samples of one split, numbered from 0. NOT_FOUND if there is no such split. */
SHARDPACK_API shardpack_code shardpack_dataset_split(const shardpack_dataset* dataset,
                                                     const char* name, shardpack_dataset** split,
                                                     shardpack_error** error);
/* The samples with these ids, in this order, numbered from 0: a selection. An id may come twice,
 * and there may be none. Copies the ids and shares everything else. Its identity is that of the
 * dataset and the ids. Its shards, with their columns, numbers of bytes and records and first ids,
 * are those of the dataset, whole; shardpack_dataset_locate says where in them a sample is.
 * OUT_OF_RANGE for an id that the dataset does not have. */
SHARDPACK_API shardpack_code shardpack_dataset_select(const shardpack_dataset* dataset,
                                                      const uint64_t* ids, size_t count,
                                                      shardpack_dataset** selected,
                                                      shardpack_error** error);
/* One more reference; returns `dataset`. */
SHARDPACK_API shardpack_dataset* shardpack_dataset_retain(shardpack_dataset* dataset);
SHARDPACK_API void shardpack_dataset_release(shardpack_dataset* dataset);

SHARDPACK_API shardpack_code shardpack_dataset_info_of(const shardpack_dataset* dataset,
                                                       shardpack_dataset_info* info,
                                                       shardpack_error** error);
SHARDPACK_API shardpack_code shardpack_dataset_shard(const shardpack_dataset* dataset,
                                                     uint32_t shard, shardpack_shard_info* info,
                                                     shardpack_error** error);
/* The name of label n, or the n-th split (sorted). Valid as long as the dataset. */
SHARDPACK_API shardpack_code shardpack_dataset_name(const shardpack_dataset* dataset, uint32_t what,
                                                    uint32_t n, shardpack_text* name,
                                                    shardpack_error** error);
/* The names of a shard's fields, the first `room` of them; `count` receives how many there are, at
 * most 256. Valid as long as the dataset. */
SHARDPACK_API shardpack_code shardpack_dataset_fields(const shardpack_dataset* dataset,
                                                      uint32_t shard, shardpack_text* names,
                                                      size_t room, size_t* count,
                                                      shardpack_error** error);
/* A column of a shard, as a view of its verified index: nothing is copied, and it is valid as long
 * as the dataset. `field` is for OFFSET, BYTES and HASH (NULL: "image"), and ignored for others;
 * NOT_FOUND if no record of the shard has it. */
SHARDPACK_API shardpack_code shardpack_dataset_column(const shardpack_dataset* dataset,
                                                      uint32_t shard, uint32_t column,
                                                      const char* field, shardpack_column* view,
                                                      shardpack_error** error);
/* The shard and record of a sample. */
SHARDPACK_API shardpack_code shardpack_dataset_locate(const shardpack_dataset* dataset, uint64_t id,
                                                      uint32_t* shard, uint64_t* record,
                                                      shardpack_error** error);
/* The key of a sample. Valid as long as the dataset. */
SHARDPACK_API shardpack_code shardpack_dataset_key(const shardpack_dataset* dataset, uint64_t id,
                                                   shardpack_text* key, shardpack_error** error);
/* The id of the first sample with this key, of `key_bytes` bytes. The first call compares with all
 * keys, the second one makes a table, of 12 to 24 bytes a sample, while others wait. NOT_FOUND if
 * no sample has it; otherwise errors of reading an index, as DATA_LOSS. */
SHARDPACK_API shardpack_code shardpack_dataset_find_key(const shardpack_dataset* dataset,
                                                        const char* key, size_t key_bytes,
                                                        uint64_t* id, shardpack_error** error);
/* Reads samples, in this order, on the calling thread: a batch of `count` slots with epoch and step
 * 0. Every field is checked against its hash. Without `fields` (NULL and 0): all that the samples
 * have. NOT_FOUND for a field that no shard of the dataset has. An id may come twice. */
SHARDPACK_API shardpack_code shardpack_dataset_read(const shardpack_dataset* dataset,
                                                    const uint64_t* ids, size_t count,
                                                    const char* const* fields, size_t field_count,
                                                    shardpack_batch** batch,
                                                    shardpack_error** error);
/* Not 0: from now on shardpack_dataset_read copies samples from mappings of the shards that are in
 * the page cache, and a handler of SIGBUS is installed, as map_shards of shardpack_loader_options
 * says; 0, as at first: it reads them. Of this handle and its references; selections, splits and
 * joins of it begin with 0. Any thread. */
SHARDPACK_API shardpack_code shardpack_dataset_map_shards(shardpack_dataset* dataset, uint32_t on,
                                                          shardpack_error** error);

/* For programs that export columns by Arrow's C data and stream interfaces in a language whose
 * functions cannot be called at every moment, such as Python's while an exception is on its way:
 * the `release` of an ArrowSchema, ArrowArray and ArrowArrayStream. It releases the children and
 * the dictionary, unless they were moved, and then sets the uint64_t that private_data points to to
 * 1: what belongs to the struct can be freed. Any thread. */
SHARDPACK_API void shardpack_arrow_release_schema(void* schema);
SHARDPACK_API void shardpack_arrow_release_array(void* array);
SHARDPACK_API void shardpack_arrow_release_stream(void* stream);

/* -------------------------------------------------------------------------------------- orders */

/* Which sample is at which position of an epoch: a pure function of the options, the same in every
 * version, process and machine. */
typedef struct shardpack_order shardpack_order;

/* In place of an id: the slot holds no sample. */
#define SHARDPACK_PADDING_ID UINT64_MAX

enum {
  SHARDPACK_SHUFFLE = 0, /* global and exact, new in each epoch */
  SHARDPACK_SEQUENTIAL = 1,
  SHARDPACK_BLOCK_SHUFFLE = 2 /* keeps reads close together, for slow media */
};
/* What happens if batches do not divide an epoch. */
enum {
  SHARDPACK_TAIL_DROP = 0, /* the samples of the incomplete last step do not come in this epoch */
  SHARDPACK_TAIL_PAD = 1   /* it is filled with slots without samples */
};

/* One of several joined datasets. */
typedef struct shardpack_mixture_part {
  uint64_t first_id, samples;
  double weight; /* relative to the others: finite and > 0 */
} shardpack_mixture_part;

typedef struct shardpack_order_options {
  size_t size;
  uint64_t seed;
  uint32_t global_batch; /* slots in each step, over all ranks; 0: 1 */
  uint32_t mode, tail;
  uint32_t block_samples, window_blocks; /* of SHARDPACK_BLOCK_SHUFFLE; 0: 256 and 64 */
  uint32_t reserved;
  /* Samples of an epoch; 0: each once. Otherwise epochs are cut from an endless sequence of passes.
   * A mixture needs it. */
  uint64_t epoch_samples;
  /* Not NULL: these ids stand for the samples, in this order if SEQUENTIAL. Copied. */
  const uint64_t* subset;
  uint64_t subset_count;
  /* Every epoch takes its share of each part. With a subset, first_id counts within
   * that. Copied. */
  const shardpack_mixture_part* mixture;
  size_t mixture_count;
} shardpack_order_options;

/* `samples`: of the dataset, shardpack_dataset_info.samples. INVALID for options that do not fit
 * them or each other, as an id of the subset beyond them or an epoch without a step. */
SHARDPACK_API shardpack_code shardpack_order_make(uint64_t samples,
                                                  const shardpack_order_options* options,
                                                  shardpack_order** order, shardpack_error** error);
SHARDPACK_API shardpack_order* shardpack_order_retain(shardpack_order* order);
SHARDPACK_API void shardpack_order_release(shardpack_order* order);
/* Steps of an epoch, at least 1; 0 for NULL. */
SHARDPACK_API uint64_t shardpack_order_steps(const shardpack_order* order);
/* Samples of an epoch, without padding; 0 for NULL. */
SHARDPACK_API uint64_t shardpack_order_samples(const shardpack_order* order);
/* The ids of `count` slots of a step, from `first_slot` on; rank r of n has its share of
 * global_batch / n slots from r * global_batch / n on. */
SHARDPACK_API shardpack_code shardpack_order_ids(const shardpack_order* order, uint64_t epoch,
                                                 uint64_t step, uint32_t first_slot, uint64_t* ids,
                                                 size_t count, shardpack_error** error);
/* One line with exactly what determines the order; equal lines, equal ids. Terminated; valid as
 * long as the order; "" for NULL. */
SHARDPACK_API const char* shardpack_order_explain(const shardpack_order* order);

/* ------------------------------------------------------------------------------------ decoding */

enum { SHARDPACK_RANDOM_RESIZED = 0, SHARDPACK_CENTER = 1, SHARDPACK_RESIZE = 2 };
enum { SHARDPACK_U8 = 0, SHARDPACK_F32 = 1, SHARDPACK_F16 = 2, SHARDPACK_BF16 = 3 };
enum { SHARDPACK_NHWC = 0, SHARDPACK_NCHW = 1 };
enum { SHARDPACK_BILINEAR = 0, SHARDPACK_BOX = 1, SHARDPACK_BICUBIC = 2, SHARDPACK_LANCZOS = 3 };

/* From the field "image" to pixels of one size: crop, antialiased resize, flip, type. Crops and
 * flips depend on the seed, the epoch and the id alone. */
typedef struct shardpack_decode {
  size_t size;
  uint32_t width, height; /* 0: 224 */
  uint32_t crop;          /* SHARDPACK_RANDOM_RESIZED, as torchvision's RandomResizedCrop */
  uint32_t filter;
  double min_scale, max_scale; /* RANDOM_RESIZED: share of the area; 0: 0.08 and 1 */
  double min_ratio, max_ratio; /* and width / height; 0: 3/4 and 4/3 */
  uint32_t shortest_side;      /* CENTER: first resized to this; 0: 256 */
  uint32_t channels;           /* 1 or 3; 0: 3 */
  double flip_probability;     /* of mirroring left to right */
  uint32_t type, layout;
  float mean[3], std[3];       /* for numbers: (pixel / 255 - mean) / std; a std of 0 counts as 1 */
  uint32_t ignore_orientation; /* 1: pixels as stored, whatever EXIF says */
  uint32_t fast;               /* 1: a little faster and less exact JPEG decoding */
  uint64_t max_pixels;         /* larger images are bad samples; 0: the library's limit */
  uint32_t max_scans;          /* the same for scans of a progressive JPEG */
  uint32_t reserved;
} shardpack_decode;

/* What a loader makes of a field beside the image (shardpack_loader_options.field_decodes). */
enum {
  SHARDPACK_AS_IMAGE = 0,  /* pixels like those of the image */
  SHARDPACK_AS_LABELS = 1, /* a label map: the numbers that are stored, by nearest neighbour */
  SHARDPACK_AS_COCO = 2,   /* objects of COCO's JSON, for shardpack_batch_objects */
  /* The label map that the polygons and run lengths of COCO's JSON describe, as pycocotools paints
   * them: the class of the object plus 1, and 0 where there is none. */
  SHARDPACK_AS_COCO_LABELS = 3
};
/* What AS_COCO_LABELS has where several objects lie: `ignore`, or the label of the last one. */
enum { SHARDPACK_OVERLAP_IGNORE = 0, SHARDPACK_OVERLAP_LAST = 1 };
/* What such a field has in common with the image. */
enum {
  SHARDPACK_SHARE_ALL = 0,      /* crop and flip, and what changes colours */
  SHARDPACK_SHARE_GEOMETRY = 1, /* crop and flip */
  SHARDPACK_SHARE_NONE = 2      /* nothing: crop and flip are drawn separately */
};
/* Left, top, right, bottom; or left, top, width, height. */
enum { SHARDPACK_XYXY = 0, SHARDPACK_XYWH = 1 };

typedef struct shardpack_label_color {
  uint8_t red, green, blue, reserved;
  uint32_t label;
} shardpack_label_color;

/* Images and label maps have the shape of the sample's image as displayed, at any scale. Their own
 * orientation is applied, not that of the image. Arrays are copied. A field of JSON can be given
 * twice, AS_COCO and AS_COCO_LABELS. */
typedef struct shardpack_field_decode {
  size_t size;
  const char* field;
  uint32_t kind, share; /* SHARDPACK_AS_IMAGE ...; SHARDPACK_SHARE_ALL ... */
  /* AS_LABELS: gray of 1 to 16 bits or a palette, never JPEG; and AS_COCO_LABELS. */
  uint32_t wide_labels;    /* 1: 16 bits each; else 8, and larger labels are bad samples */
  uint32_t legacy_nearest; /* 1: torchvision's NEAREST; else its NEAREST_EXACT, by pixel centres */
  uint32_t ignore;         /* where a sample has no map, never an error, no class; 0: 255 */
  uint32_t ignore_zero;    /* 1: `ignore` is 0 and not 255, with classes, too */
  uint32_t classes;        /* labels from here on are bad samples, except `ignore`; 0: none are */
  uint32_t box_format;     /* AS_COCO: SHARDPACK_XYXY ... */
  /* AS_LABELS. NULL: numbers; else labels are those of colours. */
  const shardpack_label_color* colors;
  size_t color_count;
  /* AS_COCO. Objects with boxes below a pixel are left out. */
  double min_visible;        /* and those of which less than this share is seen */
  uint32_t box_from_polygon; /* 1: boxes are those around the polygons, where there are any */
  uint32_t polygons;         /* 1: they are given, too */
  uint32_t keypoints;        /* how many an object has; 0: none are given */
  uint32_t keypoint_pairs;   /* how many pairs follow; they change places in a mirrored image */
  const uint32_t* pairs;     /* two numbers of keypoints each */
  uint32_t overlap;          /* AS_COCO_LABELS: SHARDPACK_OVERLAP_IGNORE ... */
  uint32_t reserved;
} shardpack_field_decode;

/* OK, or the INVALID that a loader would answer to these options. */
SHARDPACK_API shardpack_code shardpack_decode_check(const shardpack_decode* decode,
                                                    shardpack_error** error);

/* One encoded image in memory. */
typedef struct shardpack_image_info {
  size_t size;
  shardpack_image stored; /* what its headers say */
  uint32_t width, height; /* as displayed, after the orientation: those of its decoded pixels */
} shardpack_image_info;

/* Reads the headers of an image of `bytes` bytes, and nothing behind them: INVALID if it is not an
 * image, DATA_LOSS if they are cut or damaged, NO_MEMORY if it has more than `max_pixels` pixels
 * (0: the limit of loaders), so that what they say is no reason to allocate more. Any thread. */
SHARDPACK_API shardpack_code shardpack_image_info_of(const void* data, uint64_t bytes,
                                                     uint64_t max_pixels,
                                                     shardpack_image_info* info,
                                                     shardpack_error** error);
/* Decodes the image on the calling thread: uint8 [height, width, channels] without gaps, as
 * displayed; to the last bit the pixels that a loader makes of it with SHARDPACK_RESIZE to its own
 * size. `stored` is what is known about the image: from shardpack_image_info_of, of a batch or of a
 * column; NULL, or format 0: the headers are read. Raw pixels (format 7) have no headers, and need
 * it. `channels` are 1 or 3; `pixel_bytes` must be exactly those of the pixels. Pixels are written
 * only with OK. DATA_LOSS for damaged bytes, or another image than `stored` says; INVALID for bytes
 * that are not an image; UNSUPPORTED for a kind of image that loaders do not decode either;
 * NO_MEMORY. Any thread; each keeps the memory of its largest image of at most 512 Ki pixels, which
 * is 4 MiB at most, until it ends. */
SHARDPACK_API shardpack_code shardpack_image_decode(const void* data, uint64_t bytes,
                                                    const shardpack_image* stored,
                                                    uint32_t channels, void* pixels,
                                                    uint64_t pixel_bytes, shardpack_error** error);

/* -------------------------------------------------------------------------------- augmentation */

/* A plan says what is drawn for every sample, a program what one sample gets. Both are text:
 *   augment/1 color_jitter(b=.4, c=.4, s=.4, h=.1) rand_augment(n=2, m=9) erase(p=.25)
 *   rotate(-9) equalize
 * docs/augment.md has all steps and operations. */

/* The plan's canonical text: of two plans that draw the same, mostly equal. `moves_pixels` (may be
 * NULL): 1 if it may move pixels after the crop. INVALID for text that is not a plan, naming the
 * column. Free the text. */
SHARDPACK_API shardpack_code shardpack_augment_check(const char* plan, char** canonical,
                                                     uint32_t* moves_pixels,
                                                     shardpack_error** error);
/* The program that the plan draws for a sample: a function of these numbers alone. `view` counts
 * the versions of a sample (shardpack_loader_options.views), width and height are those of the
 * result. Free the text. */
SHARDPACK_API shardpack_code shardpack_augment_draw(const char* plan, uint64_t seed, uint64_t epoch,
                                                    uint64_t id, uint32_t view, uint32_t width,
                                                    uint32_t height, char** program,
                                                    shardpack_error** error);
/* Applies a program to 8-bit pixels in place: [height, width, channels], rows `stride_bytes` apart
 * (0: without gaps), 1 or 3 channels. */
SHARDPACK_API shardpack_code shardpack_program_apply(const char* program, uint8_t* pixels,
                                                     uint32_t width, uint32_t height,
                                                     uint32_t channels, uint64_t stride_bytes,
                                                     shardpack_error** error);

/* MixUp and CutMix. Each sample is mixed with the next one of its group, neighbours in the global
 * batch; the last with the first; padding with none. The group divides each rank's share, so pixels
 * do not depend on the world size. */
typedef struct shardpack_mix {
  size_t size;
  double mixup, cutmix; /* alpha of Beta(alpha, alpha); 0: not used; both: one of them is drawn */
  double probability;   /* that a group is mixed; 0: 1 */
  double cutmix_share;  /* of CutMix where both are used; 0: 1/2 */
  double smoothing;     /* of labels: this much is spread over all classes */
  uint32_t group;       /* 0: 2 */
  uint32_t classes;     /* columns of the soft labels */
} shardpack_mix;

/* An operation of your own, for `own(NAME)` of a plan. Its functions are those of shardpack_op.h,
 * are called from any thread of a loader, and run for as long as a loader that has it. */
typedef struct shardpack_own_operation {
  size_t size;
  const char* plugin;     /* a shared library that exports shardpack_op_v1; NULL: `run` */
  const char* parameters; /* what it reads, and what cursors know of it; NULL: none */
  const char* name;       /* without a plug-in: a word of letters, digits and _ */
  const void* run;        /* without a plug-in: a shardpack_op_run, such as numba.cfunc.address */
  void* self;             /* passed to `run` */
} shardpack_own_operation;

/* The name of a plug-in's operation, if it can be opened and takes the parameters; else an error
 * that names the file: NOT_FOUND, STATE if it cannot be loaded, is not a plug-in, or has changed
 * since this process loaded it, UNSUPPORTED for one of another version, INVALID for the parameters.
 * Free the text. */
SHARDPACK_API shardpack_code shardpack_plugin_name(const char* plugin, const char* parameters,
                                                   char** name, shardpack_error** error);

/* ------------------------------------------------------------------------------------- loaders */

/* Reads batches ahead with its own threads and returns them in the exact order of the steps. */
typedef struct shardpack_loader shardpack_loader;
typedef struct shardpack_device shardpack_device;

enum {
  SHARDPACK_BAD_FAIL = 0,      /* the first sample that cannot be read or decoded is an error */
  SHARDPACK_BAD_SUBSTITUTE = 1 /* the next good one of the epoch takes its slot */
};

typedef struct shardpack_loader_options {
  size_t size;
  uint32_t rank, world_size; /* this process's share of each step; world_size 0: 1 */
  const char* cursor;        /* NULL: from the beginning; else where to go on */
  const char* const* fields; /* NULL: "image" alone */
  size_t field_count;
  const shardpack_decode* decode; /* NULL: batches have the encoded bytes */
  uint64_t augment_seed;          /* of random crops and flips */
  uint64_t epochs;                /* then SHARDPACK_END for ever; 0: no limit */
  uint64_t memory_bytes; /* for batches read ahead, at most, and at least one; what the caller keeps
                            comes on top; 0: 1 GiB */
  uint64_t max_bad_samples; /* substituted in all; more are an error; 0: 100 */
  uint32_t bad_samples;     /* SHARDPACK_BAD_FAIL */
  /* For work on the CPU; 0: the cores of this process. Of as many ranks as $LOCAL_WORLD_SIZE or
   * $OMPI_COMM_WORLD_LOCAL_SIZE says, each takes its share of the cores that their launcher has, or
   * as many as it is bound to if those are fewer. 4096 at most, as io_threads. */
  int32_t threads;
  int32_t io_threads;        /* reads at once that wait for the disk; 0: 32; -1: none */
  uint32_t prefetch_batches; /* 0: enough for the threads */
  uint32_t no_verify;        /* 1: bytes are not checked against their hashes */
  /* 1: samples are copied from mappings of the shards that are in the page cache, several times
   * faster for samples of a few kilobytes. Installs a handler of SIGBUS, which passes on what is
   * not its own, so that a shard that is truncated meanwhile is an error and not the end. */
  uint32_t map_shards;
  shardpack_device* device; /* NULL: pageable memory; else page-locked, for loader_to_device */
  /* Fields whose images are masks, for shardpack_batch_masks; they are read beside `fields`. Not
   * NULL needs `decode`. A mask gets the crop and flip of the sample's image, so it has the size of
   * that image as displayed; the nearest pixel is taken, by pixel centres, as Pillow's NEAREST. Its
   * own orientation is applied, not that of the image. Its values are those that are stored: of
   * gray images, or indices of palettes, of at most 8 bits. Others are bad samples, but not a gray
   * JPEG, whose compression invents values at edges: label maps are SHARDPACK_AS_LABELS. */
  const char* const* decode_fields;
  size_t decode_field_count;
  /* Further fields that are read and decoded, for shardpack_batch_decoded and
   * shardpack_batch_objects. Not NULL needs `decode`. */
  const shardpack_field_decode* const* field_decodes;
  size_t field_decode_count;
  /* These need `decode`, and not masks where they move or mix pixels. */
  const char* augment;      /* a plan, applied after crop, resize and flip; NULL: none */
  const shardpack_mix* mix; /* NULL: samples are not mixed */
  uint32_t views;           /* versions of each sample, each with draws of its own; 0: 1 */
  uint32_t other_augment;   /* 1: also goes on from a cursor of a run that augmented otherwise */
  /* One for each `own(NAME)` of `augment`; others come behind its steps, in this order. */
  const shardpack_own_operation* const* own_operations;
  size_t own_operation_count;
} shardpack_loader_options;

/* INVALID if order, rank, cursor or fields do not fit the dataset, DATA_LOSS for a damaged cursor.
 */
SHARDPACK_API shardpack_code shardpack_loader_open(const shardpack_dataset* dataset,
                                                   const shardpack_order* order,
                                                   const shardpack_loader_options* options,
                                                   shardpack_loader** loader,
                                                   shardpack_error** error);
/* The next batch. END once after the last one of an epoch. An error about a sample (DATA_LOSS, IO)
 * comes again with each call; so does CANCELLED after shardpack_loader_stop. */
SHARDPACK_API shardpack_code shardpack_loader_next(shardpack_loader* loader, int64_t wait_ms,
                                                   shardpack_batch** batch,
                                                   shardpack_error** error);
/* Goes on at this step instead. What was read ahead is dropped; substituted samples of batches that
 * came before still count, and are still reported. */
SHARDPACK_API shardpack_code shardpack_loader_seek(shardpack_loader* loader, uint64_t epoch,
                                                   uint64_t step, shardpack_error** error);
/* The place of the batch that comes next, as a line of text for a checkpoint: a loader of the same
 * dataset and order, opened with it, continues there, with any world size that divides the global
 * batch. Whether crops, sizes and augment_seed are those of before is not compared. Any thread.
 * Free the text. */
SHARDPACK_API shardpack_code shardpack_loader_cursor(const shardpack_loader* loader, char** cursor,
                                                     shardpack_error** error);
/* The same as numbers. Any thread. */
SHARDPACK_API shardpack_code shardpack_loader_position(const shardpack_loader* loader,
                                                       uint64_t* epoch, uint64_t* step,
                                                       shardpack_error** error);
/* What every stage did, as a JSON object. Any thread. Free the text. */
SHARDPACK_API shardpack_code shardpack_loader_stats_json(const shardpack_loader* loader,
                                                         char** json, shardpack_error** error);
/* A few lines for people; the first names the bottleneck. Any thread. Free the text. */
SHARDPACK_API shardpack_code shardpack_loader_explain(const shardpack_loader* loader, char** text,
                                                      shardpack_error** error);
/* A JSON array of the samples that were substituted in batches since the last call, each an object
 * with epoch, step, id and why. Any thread. Free the text. */
SHARDPACK_API shardpack_code shardpack_loader_take_bad_samples_json(shardpack_loader* loader,
                                                                    char** json,
                                                                    shardpack_error** error);
/* Ends all work, at once and for good: a waiting shardpack_loader_next returns CANCELLED. Any
 * thread. Batches stay valid. */
SHARDPACK_API void shardpack_loader_stop(shardpack_loader* loader);
/* Stops the loader and waits until its threads and memory are gone; then OK. The loader must still
 * be released. */
SHARDPACK_API shardpack_code shardpack_loader_close(shardpack_loader* loader, int64_t wait_ms,
                                                    shardpack_error** error);
/* Closes and frees the loader. Waits two seconds at most: a read that hangs, as on a network file
 * system, is left to its thread, together with the memory that it needs. */
SHARDPACK_API void shardpack_loader_release(shardpack_loader* loader);

/* ------------------------------------------------------------------------------------- batches */

/* State of a slot. */
enum {
  SHARDPACK_SAMPLE_OK = 0,
  SHARDPACK_SAMPLE_PADDING = 1,    /* no sample */
  SHARDPACK_SAMPLE_SUBSTITUTED = 2 /* another sample, in place of a bad one */
};

enum { SHARDPACK_HOST = 1, SHARDPACK_CUDA = 2 };

/* Arrays have one entry a slot and are valid as long as the batch. */
typedef struct shardpack_batch_view {
  size_t size;
  uint64_t epoch, step;
  uint64_t slots;
  const uint64_t* ids;           /* of the samples that are there; SHARDPACK_PADDING_ID */
  const int64_t* labels;         /* in host memory; -1: none */
  const uint8_t* states;         /* SHARDPACK_SAMPLE_OK ... */
  const shardpack_image* images; /* facts of the encoded images; NULL if they are not known */
  /* [slots, height, width, channels] for NHWC, [slots, channels, height, width] for NCHW, without
   * gaps; NULL if the loader does not decode. The caller may write to them. */
  void* pixels;
  uint64_t pixel_bytes; /* of all slots */
  uint32_t height, width, channels, type, layout;
  uint32_t fields;        /* for shardpack_batch_field */
  uint32_t device_kind;   /* where pixels and spans are */
  int32_t device_number;  /* of a GPU; -1: host memory */
  int64_t* device_labels; /* the labels beside the pixels of a GPU; NULL if they are not there */
  uint32_t views;         /* pixels are [views, slots, ...] if there are several */
  uint32_t classes;
  /* Of a loader that mixes, in host memory; else NULL. */
  const float* soft_labels; /* [slots, classes]; zeros for padding and samples without a label */
  const uint64_t* partners; /* the id of the other sample; SHARDPACK_PADDING_ID: none */
  const float* weights;     /* the other sample's share of the label */
} shardpack_batch_view;

typedef struct shardpack_span {
  const void* data; /* NULL: the sample lacks the field */
  uint64_t bytes;
} shardpack_span;

/* What became of an image: the part that was taken, in pixels of the image as displayed, that is,
 * after its orientation, with edges that may lie within pixels. */
typedef struct shardpack_crop {
  double left, top, right, bottom;
  uint32_t width, height; /* of the whole image as displayed; 0: unknown, and the box is empty */
  uint32_t flip;          /* 1: mirrored left to right */
  uint32_t reserved;
} shardpack_crop;

SHARDPACK_API shardpack_batch* shardpack_batch_retain(shardpack_batch* batch);
/* With the last reference the loader reuses the memory, so release batches soon. */
SHARDPACK_API void shardpack_batch_release(shardpack_batch* batch);
SHARDPACK_API shardpack_code shardpack_batch_view_of(const shardpack_batch* batch,
                                                     shardpack_batch_view* view,
                                                     shardpack_error** error);
/* The name of the n-th field. Valid as long as the batch. */
SHARDPACK_API shardpack_code shardpack_batch_field(const shardpack_batch* batch, uint32_t n,
                                                   shardpack_text* name, shardpack_error** error);
/* The bytes of a field of every slot, into `spans[0]` to `spans[count - 1]`; `count` is the number
 * of slots. Read-only; valid as long as the batch. The encoded bytes of a decoded image are not
 * kept. `field`: NULL for "image". */
SHARDPACK_API shardpack_code shardpack_batch_spans(const shardpack_batch* batch, const char* field,
                                                   shardpack_span* spans, size_t count,
                                                   shardpack_error** error);
/* The masks of a field that was among `decode_fields`: [slots, height, width] of the batch's
 * pixels, without gaps, `bytes` in all. A slot without the field is 0; its span is NULL. The caller
 * may write to them. Valid as long as the batch. NOT_FOUND for other fields. */
SHARDPACK_API shardpack_code shardpack_batch_masks(const shardpack_batch* batch, const char* field,
                                                   uint8_t** masks, uint64_t* bytes,
                                                   shardpack_error** error);
/* The crops and flips of a decoded batch, likewise; of the first view. UNSUPPORTED for a batch that
 * was not decoded. */
SHARDPACK_API shardpack_code shardpack_batch_crops(const shardpack_batch* batch,
                                                   shardpack_crop* crops, size_t count,
                                                   shardpack_error** error);
/* What an augmented slot got: the text of a program, for shardpack_program_apply; empty for
 * padding. `view` is 0 unless the loader makes several. UNSUPPORTED for a batch that was not
 * decoded. Free the text. */
SHARDPACK_API shardpack_code shardpack_batch_program(const shardpack_batch* batch, size_t slot,
                                                     uint32_t view, char** program,
                                                     shardpack_error** error);
/* The maps from each image as displayed to its slot's pixels, in coordinates where pixel x covers x
 * to x + 1: six numbers a slot, x' = a x + b y + c and y' = d x + e y + f; the identity for
 * padding. `count` is the number of slots. UNSUPPORTED as for the crops. */
SHARDPACK_API shardpack_code shardpack_batch_affine(const shardpack_batch* batch, double* affine,
                                                    size_t count, shardpack_error** error);
/* The same as nine numbers a slot, row by row a matrix M: (x', y') are the first two of M (x, y, 1)
 * divided by the third. Of a plan with `perspective` these are the only maps, and the affine ones
 * UNSUPPORTED; of one with `elastic` both are. */
SHARDPACK_API shardpack_code shardpack_batch_projection(const shardpack_batch* batch,
                                                        double* projection, size_t count,
                                                        shardpack_error** error);

/* What a field of `field_decodes` was decoded to. Valid as long as the batch; the caller may write
 * to it. */
typedef struct shardpack_decoded_field {
  size_t size;
  /* AS_IMAGE: as the pixels of the batch. AS_LABELS, AS_COCO_LABELS: [slots, height, width] of the
   * pixels, in the byte order of the machine. AS_COCO: NULL. Without gaps. */
  void* data;
  uint64_t bytes;       /* of all slots */
  uint32_t kind;        /* SHARDPACK_AS_IMAGE ... */
  uint32_t label_bytes; /* of label maps: 1 or 2; else 0 */
} shardpack_decoded_field;

/* NOT_FOUND for other fields. */
SHARDPACK_API shardpack_code shardpack_batch_decoded(const shardpack_batch* batch,
                                                     const char* field,
                                                     shardpack_decoded_field* decoded,
                                                     shardpack_error** error);

/* The objects of all slots, one after the other, in pixels of the slots. Valid as long as the
 * batch. */
typedef struct shardpack_objects {
  size_t size;
  uint64_t objects;
  const int64_t* offsets; /* [slots + 1]: where those of each slot begin */
  const float* boxes;     /* [objects, 4] */
  const float* areas;     /* [objects]: of the whole object, scaled as the image is */
  const int64_t* labels;  /* [objects]; -1: none */
  const uint8_t* crowds;  /* [objects]: 1: a group that was not told apart */
  const uint32_t* keep;   /* [objects]: the position in the JSON */
  const float* keypoints; /* [objects, keypoints_each, 3]: x, y, and COCO's 0, 1 or 2 */
  /* [objects + 1]: where the polygons of each object begin; NULL if they were not asked for. */
  const int64_t* ring_offsets;
  const int64_t* point_offsets; /* where the points of each begin */
  const float* polygons;        /* two numbers a point */
  uint64_t dropped;             /* objects that are not there: too small, or not seen */
  uint64_t outside;             /* boxes that went beyond their image and were cut */
  uint32_t keypoints_each;
  uint32_t reserved;
} shardpack_objects;

/* NOT_FOUND if no field is decoded AS_COCO. */
SHARDPACK_API shardpack_code shardpack_batch_objects(const shardpack_batch* batch,
                                                     shardpack_objects* objects,
                                                     shardpack_error** error);
/* Why a slot has a substitute, and the id that belongs there (its own id and an empty text if it
 * has none). `wanted_id` may be NULL. Valid as long as the batch. */
SHARDPACK_API shardpack_code shardpack_batch_why(const shardpack_batch* batch, size_t slot,
                                                 uint64_t* wanted_id, shardpack_text* why,
                                                 shardpack_error** error);

/* What shardpack_batch_dlpack exports. */
enum { SHARDPACK_PIXELS = 0, SHARDPACK_LABELS = 1 };
/* A tensor for other libraries, without a copy: a DLManagedTensorVersioned of DLPack 1.1 if
 * `versioned` is not 0, else a DLManagedTensor. The export has a reference of its own to the batch;
 * the consumer calls its deleter, once, on any thread. For a batch on a GPU call
 * shardpack_batch_wait_on first. NOT_FOUND if the batch has no such tensor. */
SHARDPACK_API shardpack_code shardpack_batch_dlpack(shardpack_batch* batch, uint32_t what,
                                                    uint32_t versioned, void** managed,
                                                    shardpack_error** error);

/* ------------------------------------------------------------------------------------- devices */

/* A `stream` is a cudaStream_t; NULL is the default stream. */

typedef struct shardpack_device_info {
  size_t size;
  uint32_t kind;                   /* SHARDPACK_HOST or SHARDPACK_CUDA */
  int32_t number;                  /* of a GPU; -1: the CPU */
  shardpack_text why_not;          /* why "auto" is the CPU; else empty */
  shardpack_text name, pci_bus_id; /* of a GPU */
  uint64_t memory_bytes, free_bytes;
  int32_t compute_major, compute_minor;
} shardpack_device_info;

/* "cuda:3" or "3": that GPU. "cuda": the GPU numbered $LOCAL_RANK (0 without). "cpu": the same
 * batches in host memory. "auto": as "cuda", or the CPU on a machine without a GPU. UNAVAILABLE if
 * the GPU cannot be used, UNSUPPORTED by a library that was built without CUDA. */
SHARDPACK_API shardpack_code shardpack_device_open(const char* name, shardpack_device** device,
                                                   shardpack_error** error);
SHARDPACK_API shardpack_device* shardpack_device_retain(shardpack_device* device);
SHARDPACK_API void shardpack_device_release(shardpack_device* device);
/* Text is valid as long as the device. */
SHARDPACK_API shardpack_code shardpack_device_info_of(const shardpack_device* device,
                                                      shardpack_device_info* info,
                                                      shardpack_error** error);

/* Who decodes images for a device. */
enum {
  /* Its JPEG engines what they take, nvJPEG's hybrid decoder or else the CPU the rest: always the
   * same one of an image on the same machine. */
  SHARDPACK_DECODE_BY_DEVICE = 0,
  /* Whichever of the ways below the first batches show to take least: each decodes three batches,
   * with its time, then the best one decodes all others. Of random crops nvJPEG's are tried with
   * whole images and with the parts that are needed, and the CPU decodes at the scale that is
   * needed. The stats say which and why (decode_choice). Runs no longer repeat bit for bit. */
  SHARDPACK_DECODE_BY_AUTO = 1,
  SHARDPACK_DECODE_BY_HYBRID = 2, /* nvJPEG without engines; the CPU the rest */
  SHARDPACK_DECODE_BY_CPU = 3     /* threads, to the last bit the same everywhere */
};

typedef struct shardpack_device_options {
  size_t size;
  uint32_t prefetch_batches; /* 0: 2 */
  uint32_t preprocess;       /* 1: resize, normalise and cast on the device, by what follows */
  uint32_t type, layout;     /* this, and what follows to std, needs `preprocess` or `decode` */
  uint32_t width, height;    /* 0: as the loader decodes */
  uint32_t filter;
  uint32_t no_labels; /* 1: labels are not copied to the device */
  float mean[3], std[3];
  /* For a loader that does not decode: images are decoded for the device, by its JPEG engines where
   * it has some. Crop, filter, channels and limits; its type and layout must be 0. */
  const shardpack_decode* decode;
  uint64_t raw_bytes;   /* room for the encoded bytes of a batch; 0: by the first one */
  uint64_t patience_ms; /* for a consumer that holds all buffers; 0: 30,000 */
  uint32_t decode_by;   /* with `decode`: SHARDPACK_DECODE_BY_DEVICE */
  /* 1: threads of the CPU take images of the engines too, so that both finish together: more images
   * per second. Runs no longer repeat bit for bit: who decodes an image depends on time, and the
   * decoders differ by a few levels. */
  uint32_t share_decoding;
  /* With `decode`: a plan, drawn as that of a loader with the same seed; NULL: none. Operations on
   * single pixels (brightness, posterize, solarize, invert, gamma, saturation, hue, grayscale,
   * erase) are done within the launch that preprocesses, those on whole images (contrast,
   * autocontrast, equalize, sharpness, warps but elastic) in launches after it; at most 8 of the
   * former in a row, where neighbouring tables count as one, and 8 of the latter. With any other
   * the CPU decodes and augments all, and why_fallback of the stats names it. Not of operations of
   * the caller's own. Cursors have its digest, as if `loader` augmented: INVALID for a cursor of a
   * run that augmented otherwise, without other_augment. */
  const char* augment;
  uint32_t augment_on_device_only; /* 1: that is UNSUPPORTED instead */
  /* 1: of random crops nvJPEG decodes only what they take, once a trial with the first batch has
   * shown the pixels of whole images (else whole images, and the stats say why). Less memory on the
   * device. SHARDPACK_DECODE_BY_AUTO tries that in any case. */
  uint32_t decode_regions;
} shardpack_device_options;

/* A loader of the batches of `loader`, copied to the device ahead. It takes over the threads of
 * `loader` (opened with options.device), whose functions then return STATE; release both. STATE
 * while another thread is in shardpack_loader_next or _seek of `loader`. It is opened in the
 * background, because that needs the first batch: the first shardpack_loader_next waits for that
 * and returns its errors, and so does shardpack_loader_opened. */
SHARDPACK_API shardpack_code shardpack_loader_to_device(shardpack_loader* loader,
                                                        shardpack_device* device,
                                                        const shardpack_device_options* options,
                                                        shardpack_loader** on_device,
                                                        shardpack_error** error);

typedef struct shardpack_resident_options {
  size_t size;
  uint32_t width, height; /* of the images as they are kept */
  uint32_t channels;      /* 0: 3 */
  uint32_t filter;
  /* NULL: whole images; else crops and flips of the kept images, and nothing of the rest. */
  const shardpack_decode* crop;
  uint32_t type, layout;
  float mean[3], std[3];
  uint64_t augment_seed, epochs;
  uint32_t rank, world_size;
  const char* cursor;
  int32_t threads;        /* that decode, while it opens; 0: as of shardpack_loader_options */
  uint32_t buffers;       /* batches at once; 0: 4 */
  double share_of_memory; /* of the free memory of the device, for images; 0: 0.8 */
} shardpack_resident_options;

/* A loader of a dataset that fits on the device: decoded once, then gathered there. Opened in the
 * background, as above. */
SHARDPACK_API shardpack_code shardpack_resident_open(
    const shardpack_dataset* dataset, const shardpack_order* order, shardpack_device* device,
    const shardpack_resident_options* options, shardpack_loader** loader, shardpack_error** error);
/* OK once the loader is open; at once for one that was opened by shardpack_loader_open. */
SHARDPACK_API shardpack_code shardpack_loader_opened(shardpack_loader* loader, int64_t wait_ms,
                                                     shardpack_error** error);

/* Memory of the caller on the device. */
typedef struct shardpack_target {
  size_t size;
  void* pixels;
  uint64_t pixel_bytes; /* exactly those of a batch */
  int64_t* labels;      /* NULL: not wanted; INVALID for a loader with no_labels */
  uint64_t label_bytes; /* exactly those of a batch, 8 a slot; 0: not checked */
} shardpack_target;

/* For graphs, whose memory has fixed addresses: copies the next batch to `target`, on the stream,
 * after what is enqueued there. `batch`, which may be NULL, has ids, labels in host memory and
 * states, but no pixels. */
SHARDPACK_API shardpack_code shardpack_loader_next_into(shardpack_loader* loader, int64_t wait_ms,
                                                        const shardpack_target* target,
                                                        void* stream, shardpack_batch** batch,
                                                        shardpack_error** error);
/* Steps of a resident set (shardpack_resident_open) within a graph; UNSUPPORTED for other loaders.
 * Enqueues one launch, on a stream that may capture a graph: each time it runs, it puts into
 * `target` the step that shardpack_loader_next_step named last; before the first one padding:
 * zeros, and labels of -1. Any number of such launches, none of which may run once the loader is
 * closed or released. STATE before shardpack_loader_opened is OK. One thread at a time, as
 * shardpack_loader_next. */
SHARDPACK_API shardpack_code shardpack_loader_enqueue_step(shardpack_loader* loader,
                                                           const shardpack_target* target,
                                                           void* stream, shardpack_error** error);
/* Names the next step for the launches of shardpack_loader_enqueue_step that come after, in the
 * order of the stream: the one that the graph is launched on, always the same; INVALID for another,
 * STATE while it captures. `batch`, which may be NULL, has ids, labels in host memory and states,
 * but no pixels. END, WAIT and the cursor are those of shardpack_loader_next, instead of which it
 * is called: where the other one was called before, it is STATE. */
SHARDPACK_API shardpack_code shardpack_loader_next_step(shardpack_loader* loader, int64_t wait_ms,
                                                        void* stream, shardpack_batch** batch,
                                                        shardpack_error** error);
/* What is enqueued on the stream from now on runs once the batch is there. With the stream -1 it is
 * this call that waits until then, as shardpack_batch_synchronize without a limit. Nothing to do
 * for a batch in host memory. One thread at a time. */
SHARDPACK_API shardpack_code shardpack_batch_wait_on(shardpack_batch* batch, void* stream,
                                                     shardpack_error** error);
/* OK once the batch is there, for use on any stream. One thread at a time. */
SHARDPACK_API shardpack_code shardpack_batch_synchronize(shardpack_batch* batch, int64_t wait_ms,
                                                         shardpack_error** error);
/* Gives the memory of the batch back now, used until what runs on the stream by now is done, though
 * references remain; ids, labels in host memory and states stay. Any thread, also while others use
 * the batch: from then on shardpack_batch_view_of has no pixels, device_labels and fields, and what
 * needs the memory is STATE. Pointers and DLPack exports that were taken before point to memory of
 * the loader, which fills it again: only what is enqueued on the stream by now may use them, and of
 * an export only its deleter is left to call. STATE the second time; UNSUPPORTED for a batch in
 * host memory. */
SHARDPACK_API shardpack_code shardpack_batch_release_on(shardpack_batch* batch, void* stream,
                                                        shardpack_error** error);

/* ---------------------------------------------------------------------------------------- jobs */

/* The command `pack`, as a child process: what changes or verifies whole datasets. Found through
 * $SHARDPACK_PACK, beside the library (in bin or ../bin, or the bin beside the lib folder that it
 * is in, at most four folders up), or in $PATH; NOT_FOUND with these places if it is not there,
 * UNSUPPORTED if it has another version than the library. It has a process group of its own: Ctrl-C
 * in this process's terminal does not reach it, and it does not end with this process. Where the
 * process waits for all its children, as by wait(), or ignores them (SIGCHLD is SIG_IGN), the exit
 * code of a job may be lost to that: then it is that of the error or of the report of a build,
 * conversion or validation, else -1. */
typedef struct shardpack_job shardpack_job;

typedef struct shardpack_job_options {
  size_t size;
  const char* folder; /* its working folder; NULL: this process's */
} shardpack_job_options;

typedef struct shardpack_job_progress {
  size_t size;
  shardpack_text stage; /* "packing"; empty before the first news; valid as long as the job */
  uint64_t done, total; /* in units of the stage; total 0: unknown */
  uint64_t bytes, total_bytes;  /* read; total 0: unknown */
  double seconds, seconds_left; /* -1: unknown */
} shardpack_job_progress;

/* Runs `pack` with these arguments, as they would be typed: {"validate", "OUT", "--level=full"}.
 * Asks each program that it finds for its version, and waits ten seconds at most for the answer:
 * TIMEOUT if that of $SHARDPACK_PACK does not come. */
SHARDPACK_API shardpack_code shardpack_job_start(const char* const* arguments, size_t count,
                                                 const shardpack_job_options* options,
                                                 shardpack_job** job, shardpack_error** error);
/* OK once it has ended, with whatever exit code. WAIT while it runs: with `progress`, as soon as
 * there is news of it, else when wait_ms have passed. One thread at a time. */
SHARDPACK_API shardpack_code shardpack_job_poll(shardpack_job* job, int64_t wait_ms,
                                                shardpack_job_progress* progress,
                                                shardpack_error** error);
/* Asks it to stop, as Ctrl-C does: what is finished is kept, and the same job goes on with it. As a
 * second Ctrl-C, a second call ends it at once. Any thread; does not wait. */
SHARDPACK_API void shardpack_job_cancel(shardpack_job* job);
/* As a shell gives it: that of `pack`, or 128 + N if signal N ended it. -1 while it runs, for NULL,
 * and if it was lost. Any thread. */
SHARDPACK_API int32_t shardpack_job_exit_code(const shardpack_job* job);
/* A JSON object: schema, verb, exit_code, cancelled (whether it was asked to stop), report and
 * error (what it printed with --json, or null; of more than 64 MiB no report is kept), stderr,
 * stdout; stderr_is_whole and stdout_is_whole are false where it was cut, or had bytes that are
 * not UTF-8. STATE while it runs. Any thread. Free the text. */
SHARDPACK_API shardpack_code shardpack_job_result_json(const shardpack_job* job, char** json,
                                                       shardpack_error** error);
/* Cancels it if it runs, waits ten seconds for its end, then kills it; the same job goes on with
 * what it has finished all the same. */
SHARDPACK_API void shardpack_job_release(shardpack_job* job);

/* ------------------------------------------------------------------------------------- writers */

/* Samples that a program makes, one after the other, in any order: shardpack_writer_finish packs
 * them in the order of their keys, so the shards are the same however they were shared out among
 * workers. Until then they are in a folder beside the dataset, PATH.parts. */
typedef struct shardpack_writer shardpack_writer;

typedef struct shardpack_writer_options {
  size_t size;
  const char* const* arguments; /* of `pack convert`, for the finish: {"--format=tfrecord"} */
  size_t argument_count;
  uint32_t worker, workers; /* of several processes that write the same dataset; workers 0: 1 */
  /* The names of labels 0, 1, ... in the finished dataset, also of those that no sample has;
   * another label is INVALID. 0 of them: numbered as shardpack_writer_add says. The same for all
   * workers. */
  const char* const* classes;
  size_t class_count;
} shardpack_writer_options;

typedef struct shardpack_field {
  const char* name; /* NULL: "image" */
  const void* data;
  uint64_t bytes;
} shardpack_field;

/* What another writer has left in PATH.parts is kept and continued. EXISTS if there is a dataset,
 * unless an argument is "--overwrite" or a finish of PATH.parts was begun, which may have made it.
 * What a finish that was killed has published is no longer continued, but removed. STATE if a
 * writer of this number is open, in any process, or while another process removes what was
 * published. */
SHARDPACK_API shardpack_code shardpack_writer_open(const char* path,
                                                   const shardpack_writer_options* options,
                                                   shardpack_writer** writer,
                                                   shardpack_error** error);
/* One of the fields is the encoded image: INVALID for one that does not begin as an image does,
 * unless an argument is a "--max-skip" above 0. `label` is the name of a class; NULL: none; a
 * negative number is INVALID. Classes are numbered in the order of their names, unless all are
 * whole numbers from 0 to 999999, which they keep ("007" and "1000000" are names). EXISTS for a key
 * that was added before. Errors about the sample have its key. Copies what it is given, hashes it,
 * and from time to time does what shardpack_writer_flush does. After an error of the system (IO,
 * NO_MEMORY, DATA_LOSS) the writer can only be released. One thread at a time. */
SHARDPACK_API shardpack_code shardpack_writer_add(shardpack_writer* writer, const char* key,
                                                  size_t key_bytes, const char* label,
                                                  const shardpack_field* fields, size_t field_count,
                                                  shardpack_error** error);
/* Samples as rows of a table. */
typedef struct shardpack_samples {
  size_t size;
  uint64_t count;
  const char* const* fields; /* the names of further fields, besides the image */
  size_t field_count;
  /* Of each sample its key, label, image and further fields, one after the other: their bytes, and
   * how many each has, 3 + field_count numbers a sample. A label of 0 bytes: none; a further field
   * of UINT64_MAX: the sample does not have it. */
  const void* bytes;
  uint64_t byte_count;
  const uint64_t* lengths;
} shardpack_samples;

/* shardpack_writer_add of each, in fewer calls. All are added but those that it refuses (INVALID,
 * EXISTS), whose first error is returned, with the key; another error ends it. */
SHARDPACK_API shardpack_code shardpack_writer_add_many(shardpack_writer* writer,
                                                       const shardpack_samples* samples,
                                                       shardpack_error** error);
/* OK if a sample with this key is safe on disk, NOT_FOUND otherwise. */
SHARDPACK_API shardpack_code shardpack_writer_has(const shardpack_writer* writer, const char* key,
                                                  size_t key_bytes, shardpack_error** error);
/* Makes safe what was added: it is on disk, and was read again and compared with its hashes. Errors
 * of the system (IO, NO_MEMORY, DENIED), and DATA_LOSS if other bytes are read than were added,
 * after which the writer can only be released. STATE after a fork. */
SHARDPACK_API shardpack_code shardpack_writer_flush(shardpack_writer* writer,
                                                    shardpack_error** error);
/* Packs, verifies and publishes what all workers wrote, as a job: each field is compared with the
 * hash that was taken when it was added. STATE while another worker is open, or if one has never
 * been, if no sample was added, and while the job of an earlier finish of this writer runs; once it
 * has failed, finish again. Errors of shardpack_writer_flush and shardpack_job_start. EXISTS if all
 * that was there is published already. Nothing can be added afterwards. PATH.parts is removed if
 * the exit code is 0 and PATH was made of it. */
SHARDPACK_API shardpack_code shardpack_writer_finish(shardpack_writer* writer, shardpack_job** job,
                                                     shardpack_error** error);
/* Without a finish, what was flushed stays for a later writer. */
SHARDPACK_API void shardpack_writer_release(shardpack_writer* writer);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SHARDPACK_H_ */
