// What libhdf5 wants of libcurl, for its reader of files on S3: every call fails. See BUILD.
#include <stddef.h>

int curl_global_init(long flags) {
  (void)flags;
  return 2;  // CURLE_FAILED_INIT
}
void curl_global_cleanup(void) {}
void* curl_easy_init(void) { return NULL; }
void curl_easy_cleanup(void* handle) { (void)handle; }
int curl_easy_perform(void* handle) {
  (void)handle;
  return 2;
}
int curl_easy_setopt(void* handle, int option, ...) {
  (void)handle;
  (void)option;
  return 2;
}
void* curl_slist_append(void* list, const char* text) {
  (void)list;
  (void)text;
  return NULL;
}
void curl_slist_free_all(void* list) { (void)list; }
