"""Archives whose bytes depend on the names, contents and modes of the files alone."""

import gzip
import pathlib
import tarfile
import zipfile

OLDEST = 315532800  # 1980-01-01, the first day that a zip file knows


def files_of(folder):
  """[(name, path)] of all files, sorted."""
  folder = pathlib.Path(folder)
  return sorted((path.relative_to(folder).as_posix(), path) for path in folder.rglob("*") if path.is_file())


def mode_of(path):
  return 0o755 if path.stat().st_mode & 0o100 else 0o644


def folders_of(folder):
  """The names of all folders, sorted."""
  folder = pathlib.Path(folder)
  return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_dir())


def write_tar_gz(folder, top, out):
  """All files of the folder, below the folder `top`."""
  with open(out, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
      # Without these, a strict umask of root closes the folders to all other users, although tar keeps the files' modes.
      for name in (top, *(f"{top}/{name}" for name in folders_of(folder))):
        member = tarfile.TarInfo(name)
        member.type, member.mode, member.mtime = tarfile.DIRTYPE, 0o755, OLDEST
        archive.addfile(member)
      for name, path in files_of(folder):
        member = tarfile.TarInfo(f"{top}/{name}")
        member.mtime = OLDEST
        if path.is_symlink():
          member.type, member.linkname, member.mode = tarfile.SYMTYPE, str(path.readlink()), 0o777
          archive.addfile(member)
          continue
        member.size, member.mode = path.stat().st_size, mode_of(path)
        with open(path, "rb") as data:
          archive.addfile(member, data)


def write_zip(files, out):
  """[(name, path)], in the given order."""
  with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
    for name, path in files:
      member = zipfile.ZipInfo(name)  # its time is OLDEST
      member.create_system = 3  # Unix: the mode counts
      member.external_attr = (0o100000 | mode_of(path)) << 16
      member.compress_type = zipfile.ZIP_DEFLATED
      archive.writestr(member, path.read_bytes(), compresslevel=9)
