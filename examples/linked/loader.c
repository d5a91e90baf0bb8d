/* Decoded batches of a packed dataset for a training loop in C: one epoch, in exact order.
 *
 *   cc loader.c $(pkg-config --cflags --libs shardpack) -o loader && ./loader DATASET */
#include <inttypes.h>
#include <shardpack.h>
#include <stdio.h>
#include <stdlib.h>

static shardpack_error* error = NULL;

static void check(shardpack_code code) { /* an example simply exits on an error */
  if (code == SHARDPACK_OK) return;
  fprintf(stderr, "%s: %s\n", shardpack_code_name(code), shardpack_error_message(error));
  exit(1);
}

int main(int argc, char** argv) {
  shardpack_dataset* dataset = NULL;
  check(shardpack_dataset_open(argc > 1 ? argv[1] : "shards", &dataset, &error));
  shardpack_dataset_info info = {.size = sizeof info};
  check(shardpack_dataset_info_of(dataset, &info, &error));

  shardpack_order_options how = {
      .size = sizeof how, .seed = 7, .global_batch = 16, .tail = SHARDPACK_TAIL_PAD};
  shardpack_order* order = NULL;
  check(shardpack_order_make(info.samples, &how, &order, &error));

  /* RandomResizedCrop(224) and a flip, to bytes in NHWC. */
  shardpack_decode decode = {.size = sizeof decode, .flip_probability = 0.5};
  shardpack_loader_options options = {.size = sizeof options, .decode = &decode};
  shardpack_loader* loader = NULL;
  check(shardpack_loader_open(dataset, order, &options, &loader, &error));

  uint64_t images = 0;
  shardpack_code code;
  shardpack_batch* batch = NULL;
  while ((code = shardpack_loader_next(loader, -1, &batch, &error)) == SHARDPACK_OK) {
    shardpack_batch_view view = {.size = sizeof view};
    check(shardpack_batch_view_of(batch, &view, &error));
    /* train(view.pixels, view.labels): pixels are [slots][height][width][channels]. */
    for (uint64_t slot = 0; slot < view.slots; ++slot)
      images += view.ids[slot] != SHARDPACK_PADDING_ID;
    shardpack_batch_release(batch);
  }
  if (code != SHARDPACK_END) check(code);
  printf("shardpack %s: %" PRIu64 " of %" PRIu64 " images\n", shardpack_version(), images,
         info.samples);
  shardpack_loader_release(loader);
  shardpack_order_release(order);
  shardpack_dataset_release(dataset);
}
