// In place of libjbig.so.0, which libtiff loads: that is under the GPL, which the archives made
// here are not. A TIFF compressed with JBIG (facsimiles) is told as one that cannot be decoded. The
// declarations are those of jbig.h as tif_jbig.c uses them.
#include <stddef.h>

void jbg_dec_init(void* decoder) { (void)decoder; }
int jbg_dec_in(void* decoder, unsigned char* data, size_t bytes, size_t* used) {
  (void)decoder, (void)data, (void)bytes, (void)used;
  return 1 << 4;  // neither JBG_EOK nor a request for more
}
unsigned char* jbg_dec_getimage(const void* decoder, int plane) {
  (void)decoder, (void)plane;
  return NULL;
}
unsigned long jbg_dec_getsize(const void* decoder) {
  (void)decoder;
  return 0;
}
void jbg_dec_free(void* decoder) { (void)decoder; }
int jbg_newlen(unsigned char* data, size_t bytes) {
  (void)data, (void)bytes;
  return 0;
}
const char* jbg_strerror(int error) {
  (void)error;
  return "JBIG is left out of this build";
}
void jbg_enc_init(void* encoder, unsigned long width, unsigned long height, int planes,
                  unsigned char** pixels, void (*out)(unsigned char*, size_t, void*), void* file) {
  (void)encoder, (void)width, (void)height, (void)planes, (void)pixels, (void)out, (void)file;
}
void jbg_enc_out(void* encoder) { (void)encoder; }
void jbg_enc_free(void* encoder) { (void)encoder; }
