#!/usr/bin/env python3
"""Makes testdata/images/ and testdata/images.tsv: tiny images of every kind with their facts.

    python3 testdata/make_images.py        # needs Pillow; run from any folder, writes beside itself

The outputs are committed, so neither building nor testing needs Python or Pillow. The expected
facts are stated here by hand and compared with what Pillow reads wherever Pillow can say it; a
difference stops the run. Deterministic for one version of Pillow and its codecs.
"""

import io
import pathlib
import struct
import zlib

from PIL import Image

HERE = pathlib.Path(__file__).resolve().parent
OUT = HERE / "images"
ROWS = []


def picture(width, height, mode="RGB"):
    """A smooth picture with some detail: compresses well, is not flat."""
    image = Image.new("RGB", (width, height))
    image.putdata([((x * 7 + y) % 256, (y * 11 + x * x // 8) % 256, (x * y) % 256)
                   for y in range(height) for x in range(width)])
    if mode == "RGBA":
        image.putalpha(Image.linear_gradient("L").resize((width, height)))
        return image
    if mode == "LA":
        return Image.merge("LA", (image.convert("L"),
                                  Image.linear_gradient("L").resize((width, height))))
    if mode == "P":
        return image.quantize(16)
    return image.convert(mode)


def encode(image, kind, **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def add(name, data, kind, size, color, channels, bits, orientation=1, flags="", check=True):
    """Writes one file and its row, after Pillow has agreed with the row."""
    if check:
        verify(name, data, kind, size, color, orientation, flags)
    OUT.joinpath(name).write_bytes(data)
    ROWS.append("\t".join(map(str, (name, kind, *size, color, channels, bits, orientation,
                                    flags or "-"))))


def verify(name, data, kind, size, color, orientation, flags):
    image = Image.open(io.BytesIO(data))
    modes = {"gray": ("L", "1", "I;16", "I;16B", "I"),
             "gray-alpha": ("LA",),
             "rgb": ("RGB", "RGBX"),
             "rgba": ("RGBA",),
             "palette": ("P", "1", "RGB", "RGBA"),
             "cmyk": ("CMYK",),
             "ycck": ("CMYK",)}
    animated = getattr(image, "n_frames", 1) > 1
    progressive = bool(image.info.get("progressive") or image.info.get("interlace"))
    seen = {
        "format": (image.format.lower(), kind),
        "size": (image.size, size),
        "animated": (animated, "animated" in flags),
        "orientation": (image.getexif().get(274, 1), orientation),
    }
    if kind == "gif":
        progressive = bool(image.tile[0][3][1])
    if kind in ("jpeg", "png", "gif"):
        seen["progressive"] = (progressive, "progressive" in flags)
    if kind in ("png", "gif", "webp"):
        alpha = "transparency" in image.info or image.mode in ("LA", "RGBA")
        seen["alpha"] = (alpha, "alpha" in flags)
    if color == "ycck":
        seen["transform"] = (image.info["adobe_transform"], 2)
    assert image.mode in modes[color], (name, image.mode, color)
    for what, (found, expected) in seen.items():
        assert found == expected, (name, what, found, expected)
    image.load()


# ---- JPEG


def exif(orientation, order="<", thumbnail=b""):
    """An EXIF block; with a thumbnail, IFD 1 holds it (Exif 2.32 section 4.5.5)."""
    mark = b"II" if order == "<" else b"MM"
    ifd0 = struct.pack(order + "HHHIHHI", 1, 274, 3, 1, orientation, 0, 26 if thumbnail else 0)
    block = b"Exif\0\0" + mark + struct.pack(order + "HI", 42, 8) + ifd0
    if thumbnail:
        start = 26 + 2 + 3 * 12 + 4
        block += struct.pack(order + "HHHIHHHHIIHHIII", 3, 259, 3, 1, 6, 0, 513, 4, 1, start, 514,
                             4, 1, len(thumbnail), 0) + thumbnail
    return block


def jpegs():
    rgb = picture(40, 24)
    add("baseline.jpg", encode(rgb, "JPEG", quality=60), "jpeg", (40, 24), "rgb", 3, 8)
    add("progressive.jpg", encode(rgb, "JPEG", quality=60, progressive=True), "jpeg", (40, 24),
        "rgb", 3, 8, flags="progressive")
    add("gray.jpg", encode(picture(33, 17, "L"), "JPEG", quality=60), "jpeg", (33, 17), "gray", 1,
        8)
    cmyk = encode(picture(24, 16, "CMYK"), "JPEG", quality=60)
    add("cmyk.jpg", cmyk, "jpeg", (24, 16), "cmyk", 4, 8)
    # The same bytes under the other transform of the Adobe marker: odd colours, a valid YCCK file.
    adobe = cmyk.index(b"Adobe")
    add("ycck.jpg", cmyk[:adobe + 11] + b"\2" + cmyk[adobe + 12:], "jpeg", (24, 16), "ycck", 4, 8)
    for i in range(1, 9):
        order = "<" if i % 2 else ">"
        data = encode(picture(16, 8), "JPEG", quality=30, optimize=True, exif=exif(i, order))
        add(f"orientation-{i}.jpg", data, "jpeg", (16, 8), "rgb", 3, 8, orientation=i)
    thumbnail = encode(picture(8, 8), "JPEG", quality=30, optimize=True)
    data = encode(rgb, "JPEG", quality=60, exif=exif(6, ">", thumbnail))
    add("thumbnail.jpg", data, "jpeg", (40, 24), "rgb", 3, 8, orientation=6)
    add("restart.jpg", restart_jpeg(), "jpeg", (16, 16), "gray", 1, 8)


def restart_jpeg():
    """Four flat 8x8 blocks with a restart marker after each (ITU-T T.81 annex B, F.1.2)."""
    def segment(code, body):
        return struct.pack(">BBH", 0xFF, code, len(body) + 2) + body

    dc = b"\x00" + bytes([1] + [0] * 15) + b"\x00"  # one code: category 0 is the bit 0
    ac = b"\x10" + bytes([1] + [0] * 15) + b"\x00"  # one code: end of block is the bit 0
    block = b"\x3F"                                 # bits 0, 0, then ones to the byte's end
    scan = block + b"".join(bytes([0xFF, 0xD0 + i]) + block for i in range(3))
    return (b"\xFF\xD8" + segment(0xDB, b"\x00" + bytes([1] * 64)) +
            segment(0xC0, struct.pack(">BHHBBBB", 8, 16, 16, 1, 1, 0x11, 0)) + segment(0xC4, dc) +
            segment(0xC4, ac) + segment(0xDD, struct.pack(">H", 1)) +
            b"\xFF\xFF" +  # fill bytes before a marker, B.1.1.2
            segment(0xDA, bytes([1, 1, 0, 0, 63, 0])) + scan + b"\xFF\xD9")


# ---- PNG


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, depth, color_type, extra=b"", interlace=0):
    """A PNG of computed samples. `extra`: chunks before IDAT."""
    samples = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[color_type]
    mask = 15 if color_type == 3 else (1 << depth) - 1

    def row(xs, y):
        bits = "".join(format((x * 5 + y * 3 + s * 17) * 257 & mask, f"0{depth}b")
                       for x in xs for s in range(samples))
        bits += "0" * (-len(bits) % 8)
        return b"\0" + int(bits, 2).to_bytes(len(bits) // 8, "big")

    if interlace:  # Adam7, PNG specification section 8.1
        passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4),
                  (1, 0, 2, 2), (0, 1, 1, 2)]
    else:
        passes = [(0, 0, 1, 1)]
    raw = b"".join(row(range(x0, width, dx), y) for x0, y0, dx, dy in passes if x0 < width
                   for y in range(y0, height, dy))
    header = struct.pack(">IIBBBBB", width, height, depth, color_type, 0, 0, interlace)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + extra +
            chunk(b"IDAT", zlib.compress(raw, 9)) + chunk(b"IEND", b""))


def pngs():
    palette = chunk(b"PLTE", bytes(range(48)))
    add("rgb.png", encode(picture(20, 12), "PNG"), "png", (20, 12), "rgb", 3, 8)
    add("rgba.png", encode(picture(20, 12, "RGBA"), "PNG"), "png", (20, 12), "rgba", 4, 8,
        flags="alpha")
    add("gray.png", encode(picture(20, 12, "L"), "PNG"), "png", (20, 12), "gray", 1, 8)
    add("gray1.png", png(13, 7, 1, 0), "png", (13, 7), "gray", 1, 1)
    add("gray16.png", png(13, 7, 16, 0), "png", (13, 7), "gray", 1, 16)
    add("gray-alpha.png", encode(picture(20, 12, "LA"), "PNG"), "png", (20, 12), "gray-alpha", 2, 8,
        flags="alpha")
    add("rgb16.png", png(13, 7, 16, 2), "png", (13, 7), "rgb", 3, 16)
    add("rgba16.png", png(9, 5, 16, 6), "png", (9, 5), "rgba", 4, 16, flags="alpha")
    add("palette.png", encode(picture(20, 12, "P"), "PNG"), "png", (20, 12), "palette", 3, 8)
    add("palette-transparent.png", png(13, 7, 4, 3, palette + chunk(b"tRNS", b"\x00\x80")), "png",
        (13, 7), "palette", 4, 8, flags="alpha")
    add("rgb-transparent.png", png(13, 7, 8, 2, chunk(b"tRNS", struct.pack(">HHH", 1, 2, 3))),
        "png", (13, 7), "rgb", 4, 8, flags="alpha")
    add("interlaced.png", png(13, 7, 8, 2, interlace=1), "png", (13, 7), "rgb", 3, 8,
        flags="progressive")
    add("orientation.png", encode(picture(20, 12), "PNG", exif=exif(8)[6:]), "png", (20, 12), "rgb",
        3, 8, orientation=8)
    frames = [picture(20, 12), picture(20, 12).transpose(Image.FLIP_LEFT_RIGHT)]
    add("animated.png", encode(frames[0], "PNG", save_all=True, append_images=frames[1:]), "png",
        (20, 12), "rgb", 3, 8, flags="animated")


# ---- WebP, GIF, BMP


def webps():
    rgb, rgba = picture(30, 20), picture(30, 20, "RGBA")
    add("lossy.webp", encode(rgb, "WEBP", quality=50), "webp", (30, 20), "rgb", 3, 8)
    add("lossless.webp", encode(rgb, "WEBP", lossless=True), "webp", (30, 20), "rgb", 3, 8)
    add("lossy-alpha.webp", encode(rgba, "WEBP", quality=50), "webp", (30, 20), "rgba", 4, 8,
        flags="alpha")
    add("lossless-alpha.webp", encode(rgba, "WEBP", lossless=True), "webp", (30, 20), "rgba", 4, 8,
        flags="alpha")
    add("orientation.webp", encode(rgb, "WEBP", quality=50, exif=exif(3)), "webp", (30, 20), "rgb",
        3, 8, orientation=3)
    flipped = rgb.transpose(Image.FLIP_TOP_BOTTOM)
    add("animated.webp", encode(rgb, "WEBP", quality=40, save_all=True, append_images=[flipped]),
        "webp", (30, 20), "rgb", 3, 8, flags="animated")


def gifs():
    image = picture(22, 14, "P")
    add("static.gif", encode(image, "GIF", interlace=0), "gif", (22, 14), "palette", 3, 8)
    # Pillow does not interlace what is lower than 16 pixels.
    add("interlaced.gif", encode(picture(16, 18, "P"), "GIF", interlace=1), "gif", (16, 18),
        "palette", 3, 8, flags="progressive")
    add("transparent.gif", encode(image, "GIF", transparency=3, interlace=0), "gif", (22, 14),
        "palette", 4, 8, flags="alpha")
    second = picture(22, 14).transpose(Image.ROTATE_180).quantize(16)
    data = encode(image, "GIF", save_all=True, append_images=[second], duration=50, interlace=0,
                  disposal=1, optimize=False)
    add("animated.gif", data, "gif", (22, 14), "palette", 3, 8, flags="animated")


def bmp(width, height, bits, compression=0, palette=b"", masks=b"", pixels=None, header_size=40,
        data_size=0):
    """A BMP of any header (the file's 14 bytes, then 12 or `header_size` bytes)."""
    if pixels is None:
        row = (width * bits + 31) // 32 * 4
        pixels = bytes(i * 37 % 256 for i in range(row * abs(height)))
    if header_size == 12:
        header = struct.pack("<IHHHH", 12, width, height, 1, bits)
    else:
        header = struct.pack("<IiiHHIIiiII", header_size, width, height, 1, bits, compression,
                             data_size, 2835, 2835, len(palette) // 4, 0)
        header = (header + (masks if header_size > 40 else b"")).ljust(header_size, b"\0")
    middle = header + (masks if header_size == 40 else b"") + palette
    return struct.pack("<2sIHHI", b"BM", 14 + len(middle) + len(pixels), 0, 0,
                       14 + len(middle)) + middle + pixels


def bmps():
    colors = b"".join(bytes([i * 16, i * 8, 255 - i, 0]) for i in range(16))
    add("rgb24.bmp", encode(picture(15, 9), "BMP"), "bmp", (15, 9), "rgb", 3, 8)
    add("palette.bmp", encode(picture(15, 9, "P"), "BMP"), "bmp", (15, 9), "palette", 3, 8)
    add("top-down.bmp", bmp(15, -9, 24), "bmp", (15, 9), "rgb", 3, 8)
    add("os2.bmp", bmp(15, 9, 24, header_size=12), "bmp", (15, 9), "rgb", 3, 8)
    add("rgb555.bmp", bmp(15, 9, 16), "bmp", (15, 9), "rgb", 3, 5)
    masks = struct.pack("<III", 0xF800, 0x07E0, 0x001F)
    add("rgb565.bmp", bmp(15, 9, 16, 3, masks=masks), "bmp", (15, 9), "rgb", 3, 6)
    masks = struct.pack("<IIII", 0x00FF0000, 0xFF00, 0xFF, 0xFF000000)
    add("rgba-v4.bmp", bmp(15, 9, 32, 3, masks=masks, header_size=108), "bmp", (15, 9), "rgba", 4,
        8, flags="alpha")
    add("rgba-v5.bmp", bmp(15, 9, 32, 3, masks=masks, header_size=124), "bmp", (15, 9), "rgba", 4,
        8, flags="alpha")
    rle = b"".join(bytes([10, y, 0, 5, 1, 2, 3, 4, 5, 0, 0, 0]) for y in range(9)) + b"\0\1"
    add("rle8.bmp", bmp(15, 9, 8, 1, palette=colors, pixels=rle, data_size=len(rle)), "bmp",
        (15, 9), "palette", 3, 8)
    # A data size of 0 is for BI_RGB only, but is found with RLE; then the walk finds the end.
    add("rle8-no-size.bmp", bmp(15, 9, 8, 1, palette=colors, pixels=rle), "bmp", (15, 9), "palette",
        3, 8, check=False)


# ---- TIFF


def tiff(order, pages, big=False, directory_last=False):
    """A TIFF whose pages are (entries, strips); an entry is (tag, type, values)."""
    sizes = {3: "H", 4: "I", 16: "Q"}
    word, entry_size, count_size = ("Q", 20, 8) if big else ("I", 12, 2)
    out = bytearray(b"II" if order == "<" else b"MM")
    out += struct.pack(order + "HHHQ", 43, 8, 0, 0) if big else struct.pack(order + "HI", 42, 0)
    link = len(out) - (8 if big else 4)
    for entries, strips in pages:
        def put_strips(at):
            offsets = []
            for strip in strips:
                offsets.append(at)
                at += len(strip)
            return offsets

        tags = 2 + len(entries)
        directory_size = count_size + tags * entry_size + (8 if big else 4)
        extra_size = sum(len(v) * struct.calcsize(sizes[t]) for _, t, v in
                         entries + [(0, 4, strips), (0, 4, strips)]
                         if len(v) * struct.calcsize(sizes[t]) > (8 if big else 4))
        start = len(out)
        if directory_last:
            offsets = put_strips(start)
            out += b"".join(strips)
            out += b"\0" * (len(out) % 2)
            start = len(out)
        else:
            offsets = put_strips(start + directory_size + extra_size)
        every = sorted(entries + [(273, 4, offsets), (279, 4, [len(s) for s in strips])])
        body = struct.pack(order + ("Q" if big else "H"), tags)
        extra = b""
        for tag, kind, values in every:
            data = struct.pack(order + sizes[kind] * len(values), *values)
            inline = 8 if big else 4
            if len(data) > inline:
                place = struct.pack(order + word, start + directory_size + len(extra))
                extra += data
            else:
                place = data.ljust(inline, b"\0")
            body += struct.pack(order + "HH" + word, tag, kind, len(values)) + place
        struct.pack_into(order + word, out, link, start)
        link = len(out) + len(body)
        out += body + struct.pack(order + word, 0) + extra
        if not directory_last:
            out += b"".join(strips)
        out += b"\0" * (0 if (entries, strips) == pages[-1] else len(out) % 2)
    return bytes(out)


def rgb_page(width, height, orientation=1, rows_per_strip=4):
    strips = [bytes(i * 13 % 256 for i in range(width * 3 * min(rows_per_strip, height - y)))
              for y in range(0, height, rows_per_strip)]
    return ([(256, 3, [width]), (257, 3, [height]), (258, 3, [8, 8, 8]), (259, 3, [1]),
             (262, 3, [2]), (274, 3, [orientation]), (277, 3, [3]), (278, 3, [rows_per_strip])],
            strips)


def tiffs():
    add("ii.tif", encode(picture(18, 10), "TIFF"), "tiff", (18, 10), "rgb", 3, 8)
    add("mm.tif", tiff(">", [rgb_page(11, 9, orientation=5)]), "tiff", (11, 9), "rgb", 3, 8,
        orientation=5)
    add("deflate-rgba.tif", encode(picture(18, 10, "RGBA"), "TIFF", compression="tiff_deflate"),
        "tiff", (18, 10), "rgba", 4, 8, flags="alpha")
    add("gray16.tif", encode(Image.new("I;16", (18, 10), 500), "TIFF"), "tiff", (18, 10), "gray", 1,
        16)
    add("palette.tif", encode(picture(18, 10, "P"), "TIFF"), "tiff", (18, 10), "palette", 3, 8)
    add("cmyk.tif", encode(picture(18, 10, "CMYK"), "TIFF"), "tiff", (18, 10), "cmyk", 4, 8)
    add("multi-page.tif", tiff("<", [rgb_page(11, 9), rgb_page(7, 5), rgb_page(3, 2)]), "tiff",
        (11, 9), "rgb", 3, 8, flags="animated")
    add("directory-last.tif", tiff("<", [rgb_page(11, 9), rgb_page(7, 5)], directory_last=True),
        "tiff", (11, 9), "rgb", 3, 8, flags="animated")
    # Pillow 9.4 reads little-endian BigTIFF only.
    add("big-ii.tif", tiff("<", [rgb_page(11, 9)], big=True), "tiff", (11, 9), "rgb", 3, 8)
    add("big-mm.tif", tiff(">", [rgb_page(11, 9)], big=True), "tiff", (11, 9), "rgb", 3, 8,
        check=False)


def main():
    OUT.mkdir(exist_ok=True)
    for old in OUT.iterdir():
        old.unlink()
    for make in (jpegs, pngs, webps, gifs, bmps, tiffs):
        make()
    header = ("# Made by make_images.py. Tabs between columns; flags are joined by commas.\n"
              "# file\tformat\twidth\theight\tcolor\tchannels\tbits\torientation\tflags\n")
    HERE.joinpath("images.tsv").write_text(header + "\n".join(ROWS) + "\n")


if __name__ == "__main__":
    main()
