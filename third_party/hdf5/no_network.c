// What libhdf5 wants of libcurl and libcrypto, for its reader of files on S3: every call fails. See
// BUILD.
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

// And of libcrypto, to sign requests.
const void* EVP_sha256(void) { return NULL; }
unsigned char* HMAC(const void* hash, const void* key, int key_bytes, const unsigned char* data,
                    size_t bytes, unsigned char* into, unsigned* into_bytes) {
  (void)hash, (void)key, (void)key_bytes, (void)data, (void)bytes, (void)into, (void)into_bytes;
  return NULL;
}
unsigned char* SHA256(const unsigned char* data, size_t bytes, unsigned char* into) {
  (void)data, (void)bytes, (void)into;
  return NULL;
}
