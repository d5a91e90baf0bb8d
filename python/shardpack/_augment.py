"""Augment: what is drawn for every image after its crop and flip; Mix: which samples are mixed."""

from __future__ import annotations

import ctypes
import math
import numbers
import os
from typing import Any, Callable, NamedTuple, Optional, Sequence, Union

from . import _c
from ._errors import OptionError
from ._library import call, library, text_made
from ._memory import import_numpy
from ._options import c_path, c_text, choice, flag, real, rebuilt, whole, within
from ._own import address_of, word

Range = Union[float, Sequence[float]]
_POLICIES = {"imagenet": 0, "cifar10": 1, "svhn": 2}
# Of a Mix, as CheckMixOptions in augment/mix.cc has them.
_ALPHAS, _CUTMIX_SHARE, _MOST_CLASSES = (1e-3, 1e3), 0.5, 1_000_000


class _Own(NamedTuple):
  """An operation that the user has made."""

  plugin: str  # a path; empty: `address`
  parameters: str
  name: str
  address: int
  keeps: Any


class Augment:
  """A plan of operations on decoded pixels, drawn for each sample from (seed, epoch, id) alone: the same after a resume, and on any
  number of processes and threads.

  Made of text, or step by step; each step returns a plan with one more. p: how probable the step is. A range is (low, high). str()
  is the plan's text, in which a version fixes every definition. docs/augment.md has all steps and operations. Raises OptionError
  that names the column for text that is not a plan.

  >>> plan = shardpack.Augment().color_jitter(0.4, 0.4, 0.4, 0.1).rand_augment(2, 9).erase(p=0.25)
  >>> print(plan)
  augment/1 color_jitter(b=0.6..1.4, c=0.6..1.4, s=0.6..1.4, h=-0.1..0.1) rand_augment erase(p=0.25)
  >>> print(shardpack.Augment('rotate(-10..10, p=0.5) gamma(0.8..1.25)'))
  augment/1 rotate(degrees=-10..10, p=0.5) gamma(gamma=0.8..1.25)
  >>> plan.draw(seed=1, epoch=0, id=7, width=224, height=224) == plan.draw(seed=1, epoch=0, id=7, width=224, height=224)
  True
  """

  def __init__(self, text: str = "") -> None:
    if not isinstance(text, str):
      raise TypeError(f"a plan must be text, not {type(text).__name__}")
    moves = ctypes.c_uint32()
    made = ctypes.c_char_p()
    call(library.augment_check, c_text(text, "augment"), ctypes.byref(made), ctypes.byref(moves))
    try:
      self._text = made.value or b""
    finally:
      library.text_free(made)
    self.moves_pixels: bool = moves.value != 0
    self._own: tuple[_Own, ...] = ()
    self._functions: tuple[Callable[[Any, Any], object], ...] = ()  # of batches

  def __str__(self) -> str:
    return self._text.decode()

  def __repr__(self) -> str:
    return f"Augment({str(self)!r})"

  def __eq__(self, other: object) -> bool:
    return isinstance(other, Augment) and (self._text, self._own, self._functions) == (other._text, other._own, other._functions)

  def __hash__(self) -> int:
    return hash(self._text)

  def __reduce__(self) -> tuple[Any, ...]:
    if any(own.address for own in self._own):
      raise TypeError("a plan with a C function cannot be pickled: its address is that of this process; plug-ins can be")
    return _plan, (str(self), self._own, self._functions)

  def then(self, step: str) -> Augment:
    """The plan with more steps, as text without a version: then('solarize(128, p=0.2)').

    >>> print(shardpack.Augment().then('solarize(128, p=0.2)'))
    augment/1 solarize(threshold=128, p=0.2)
    """
    if not isinstance(step, str) or step.lstrip().startswith("augment/"):
      raise OptionError(f"step must be the text of steps, such as 'solarize(128, p=0.2)', not a whole plan or another object: {step!r}")
    return _plan(f"{self} {step}", self._own, self._functions)

  def plugin(self, path: Union[str, os.PathLike[str]], parameters: str = "", *, p: float = 1.0) -> Augment:
    """An operation of a shared library that exports shardpack_op_v1 (shardpack_op.h), which reads the parameters. Raises
    errors that name the file: NotFoundError; StateError for what cannot be loaded, is no plug-in, or has changed since this process
    loaded it, because the code stays; UnsupportedError for a plug-in of another version; OptionError for parameters that it refuses.

    >>> try:
    ...   plan = shardpack.Augment().plugin('my_noise.so', 'amount=3', p=0.5)   # examples/plugin/my_noise.c, if it was built
    ... except FileNotFoundError as error:
    ...   print(error.path.endswith('/my_noise.so'))
    True
    """
    path = os.path.abspath(os.fspath(path))
    name = text_made(library.plugin_name, c_path(path, "path"), c_text(parameters, "parameters"))
    return self._with_own(_Own(path, parameters, name, 0, None), p)

  def function(self, function: Any, name: str, parameters: str = "", *, p: float = 1.0) -> Augment:
    """An operation that is a C function, a shardpack_op_run of shardpack_op.h: a function of ctypes with that signature, a numba.cfunc,
    or an address. It is called from any number of threads. parameters: what else decides its pixels, for checkpoints to know. It is
    kept with the plan. Raises OptionError for anything else; functions of Python are for batch().

    A result other than 0 makes the sample a bad sample. An exception does not: ctypes and numba print it, and what they return then may be
    0. So catch all exceptions within the function, and return 0 or another number in every case.

    >>> import ctypes
    >>> RUN = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint8), ctypes.c_uint32, ctypes.c_uint32,
    ...                        ctypes.c_uint32, ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint64), ctypes.c_uint64, ctypes.c_void_p)
    >>> @RUN
    ... def blacken(_self, pixels, width, height, channels, stride, _sample, _random, _error):
    ...   try:
    ...     for y in range(height):
    ...       ctypes.memset(ctypes.addressof(pixels.contents) + y * stride, 0, width * channels)
    ...     return 0
    ...   except Exception:
    ...     return 1
    >>> print(shardpack.Augment().function(blacken, 'blacken'))
    augment/1 own(blacken)
    """
    address = address_of(function)
    return self._with_own(_Own("", parameters, word(name, "function(f, name='darken')"), address, function), p)

  def batch(self, function: Callable[[Any, Any], object], name: str = "") -> Augment:
    """Calls function(pixels, identities) for every batch, as it is returned: pixels are uint8 [n, height, width, channels], to be changed
    in place, identities uint64 [n, 3]: seed, epoch and id of each. What it raises comes from next(), which
    gives the same batch again if it is asked once more; what it returns must be None. name: in the text, the function's
    own unless given. It comes after all other steps of the plan, and does not see label maps, objects and further images. Needs a
    Loader of uint8 in the layout nhwc and one view, in host memory.

    >>> def darken(pixels, identities):
    ...   pixels //= 2
    >>> print(shardpack.Augment().batch(darken))
    augment/1 batch(darken)
    """
    if not callable(function):
      raise OptionError(f"function must be a function, not {function!r}")
    name = word(name or getattr(function, "__name__", ""), "batch(f, name='darken')")
    made = self.then(f"batch({name})")
    made._functions += (function,)
    return made

  def color_jitter(self, brightness: Range = 0.0, contrast: Range = 0.0, saturation: Range = 0.0, hue: Range = 0.0, *,
                   p: float = 1.0) -> Augment:
    """torchvision's ColorJitter: in random order, each with a factor from 1 - x to 1 + x (hue: from -x to x).

    >>> print(shardpack.Augment().color_jitter(0.4, hue=(0, 0.1), p=0.8))
    augment/1 color_jitter(b=0.6..1.4, h=0..0.1, p=0.8)
    """
    return self._with("color_jitter", p, b=brightness, c=contrast, s=saturation, h=hue)

  def rand_augment(self, num_ops: int = 2, magnitude: int = 9, *, bins: int = 31, p: float = 1.0) -> Augment:
    """torchvision's RandAugment: num_ops of 14 operations.

    >>> print(shardpack.Augment().rand_augment(3, 5))
    augment/1 rand_augment(n=3, m=5)
    """
    return self._with("rand_augment", p, n=num_ops, m=magnitude, bins=bins)

  def trivial_augment_wide(self, *, bins: int = 31, p: float = 1.0) -> Augment:
    """torchvision's TrivialAugmentWide: one of 14 operations with any magnitude.

    >>> print(shardpack.Augment().trivial_augment_wide(p=0.9))
    augment/1 trivial_augment_wide(p=0.9)
    """
    return self._with("trivial_augment_wide", p, bins=bins)

  def auto_augment(self, policy: str = "imagenet", *, p: float = 1.0) -> Augment:
    """torchvision's AutoAugment; policy: 'imagenet', 'cifar10' or 'svhn'.

    >>> print(shardpack.Augment().auto_augment('cifar10', p=0.5))
    augment/1 auto_augment(cifar10, p=0.5)
    """
    choice(policy, "policy", _POLICIES)
    return self.then(f"auto_augment({policy}, p={_number(p)})")

  def aug_mix(self, severity: int = 3, mixture_width: int = 3, chain_depth: int = -1, alpha: float = 1.0, *, all_ops: bool = True,
              bilinear: bool = True, fill: int = 0, p: float = 1.0) -> Augment:
    """torchvision's AugMix: mixture_width copies, each with chain_depth operations (-1: 1 to 3), are blended with the image.

    >>> shardpack.Augment().aug_mix(mixture_width=2).draw(seed=1, epoch=0, id=7, width=64, height=64).count('chain(')
    2
    """
    return self._with("aug_mix", p, severity=severity, width=mixture_width, depth=chain_depth, alpha=alpha, all_ops=int(flag(all_ops, "all_ops")),
                      bilinear=int(flag(bilinear, "bilinear")), fill=fill)

  def erase(self, p: float = 0.5, *, scale: Range = (0.02, 0.33), ratio: Range = (0.3, 3.3), value: Union[int, str] = 0) -> Augment:
    """torchvision's RandomErasing: a rectangle of one value, or 'random' for noise. scale: its share of the area.

    >>> print(shardpack.Augment().erase(0.25, value='random'))
    augment/1 erase(value=random, p=0.25)
    """
    return self.then(f"erase(p={_number(p)}, scale={_range(scale)}, ratio={_range(ratio)}, value={value})")

  def perspective(self, distortion: Range = 0.5, p: float = 0.5, *, bilinear: bool = True, fill: int = 0) -> Augment:
    """torchvision's RandomPerspective: each corner moves into the image by up to half of distortion times its sides.

    >>> print(shardpack.Augment().perspective(0.3))
    augment/1 perspective(distortion=0.3)
    """
    return self.then(f"perspective(distortion={_range(distortion)}, p={_number(p)}, bilinear={int(flag(bilinear, 'bilinear'))}, fill={_number(fill)})")

  def elastic(self, alpha: Range = 50.0, sigma: Range = 5.0, *, p: float = 1.0, bilinear: bool = True, fill: int = 0) -> Augment:
    """torchvision's ElasticTransform of square images: each pixel moves by blurred noise of up to alpha / 2 pixels.

    >>> print(shardpack.Augment().elastic(alpha=(20, 40), p=0.5))
    augment/1 elastic(alpha=20..40, p=0.5)
    """
    return self._with("elastic", p, alpha=alpha, sigma=sigma, bilinear=int(flag(bilinear, "bilinear")), fill=fill)

  def gaussian_blur(self, kernel_size: int, sigma: Range = (0.1, 2.0), *, p: float = 1.0) -> Augment:
    """torchvision's GaussianBlur, by OpenCV: kernel_size is odd.

    >>> print(shardpack.Augment().gaussian_blur(5, sigma=(0.5, 1.5)))
    augment/1 gaussian_blur(kernel=5, sigma=0.5..1.5)
    """
    return self._with("gaussian_blur", p, kernel=kernel_size, sigma=sigma)

  def median(self, kernel_size: int, *, p: float = 1.0) -> Augment:
    """The median of kernel_size x kernel_size pixels, by OpenCV: kernel_size is odd.

    >>> print(shardpack.Augment().median(3, p=0.2))
    augment/1 median(kernel=3, p=0.2)
    """
    return self._with("median", p, kernel=kernel_size)

  def clahe(self, clip: Range = (1.0, 4.0), tiles: int = 8, *, p: float = 1.0) -> Augment:
    """Contrast limited adaptive histogram equalization of the luma, by OpenCV, in tiles x tiles parts.

    >>> print(shardpack.Augment().clahe(clip=2, tiles=4, p=0.3))
    augment/1 clahe(clip=2, tiles=4, p=0.3)
    """
    return self._with("clahe", p, clip=clip, tiles=tiles)

  def draw(self, seed: int, epoch: int, id: int, width: int, height: int, view: int = 0) -> str:  # pylint: disable=redefined-builtin
    """The program that this sample gets: text for apply_program. width, height: of the decoded image.

    >>> plan = shardpack.Augment('brightness(0.5..1.5)')
    >>> first, second = (plan.draw(seed=1, epoch=epoch, id=7, width=64, height=64) for epoch in range(2))
    >>> first.startswith('brightness('), first == second
    (True, False)
    """
    return text_made(library.augment_draw, self._text, whole(seed, "seed"), whole(epoch, "epoch"), whole(id, "id"),
                     whole(view, "view", 32), whole(width, "width", 32), whole(height, "height", 32))

  def _with_own(self, own: _Own, p: float) -> Augment:
    made = self.then(f"own({own.name}, p={_number(p)})")
    made._own += (own,)
    return made

  def _with(self, name: str, p: float, **values: Range) -> Augment:
    given = ", ".join(f"{key}={_range(value)}" for key, value in values.items())
    return self.then(f"{name}({given}, p={_number(p)})")


def _plan(text: str, own: tuple[_Own, ...], functions: tuple[Callable[[Any, Any], object], ...]) -> Augment:
  made = Augment(text)
  made._own, made._functions = own, functions
  return made


def own_array(plan: Augment) -> Any:
  """For shardpack_loader_options."""
  made = [_c.own_operation(size=ctypes.sizeof(_c.own_operation), plugin=os.fsencode(own.plugin) or None, parameters=c_text(own.parameters, "parameters"),
                           name=c_text(own.name, "name"), run=own.address or None) for own in plan._own]
  return (ctypes.POINTER(_c.own_operation) * len(made))(*(ctypes.pointer(each) for each in made))


def _number(value: Any) -> str:
  if isinstance(value, bool) or not isinstance(value, numbers.Real):  # NumPy's are such, too
    raise OptionError(f"expected a number, not {value!r}")
  return repr(int(value)) if isinstance(value, numbers.Integral) else repr(float(value))


def _range(value: Any) -> str:
  if isinstance(value, (list, tuple)):
    if len(value) != 2:
      raise OptionError(f"a range must be (low, high), not {value!r}")
    return f"{_number(value[0])}..{_number(value[1])}"
  return _number(value)


def apply_program(program: str, pixels: Any) -> Any:
  """Applies a program, such as 'rotate(-9) equalize', to pixels in place, and returns them: uint8 [height, width, 1 or 3] or
  [height, width], whose rows may have gaps between them. Raises OptionError that names the column for text that is not a program.

  >>> import numpy
  >>> image = numpy.full((32, 32, 3), 100, numpy.uint8)
  >>> int(shardpack.apply_program('invert brightness(1.1)', image)[0, 0, 0])
  170
  """
  numpy = import_numpy()
  if not isinstance(pixels, numpy.ndarray) or pixels.dtype != numpy.uint8 or pixels.ndim not in (2, 3):
    raise OptionError("pixels must be a NumPy array of uint8, [height, width, channels] or [height, width]")
  height, width = pixels.shape[:2]
  channels = pixels.shape[2] if pixels.ndim == 3 else 1
  packed = pixels.strides[1] == channels and (pixels.ndim == 2 or pixels.strides[2] == 1)
  if not packed or pixels.strides[0] < width * channels or not pixels.flags.writeable:
    raise OptionError("pixels must be writable and without gaps within a row: use numpy.ascontiguousarray(pixels)")
  call(library.program_apply, c_text(program, "program"), pixels.ctypes.data, width, height, channels, pixels.strides[0])
  return pixels


class Mix:
  """MixUp and CutMix of a Loader: each sample with the next of its group, for batch.soft_labels.

  mixup, cutmix: alpha of the Beta distribution, 0 for none; with both, cutmix_share of the groups get CutMix. classes: columns of
  the soft labels. p: how probable it is that a group is mixed. group: neighbours in the global batch that are mixed with each
  other; it divides each process's share, so pixels do not depend on the number of processes. smoothing: of the labels.

  Errors: OptionError for numbers out of range; a loader raises it for a group that does not divide its batch, and a dataset with more
  classes.

  >>> loader = shardpack.Loader(shardpack.Dataset('shards'), shardpack.Order(60, 20), decode=shardpack.Decode(32, 32),
  ...                           mix=shardpack.Mix(mixup=0.2, cutmix=1.0, classes=3))
  >>> next(loader).soft_labels.shape
  (20, 3)
  """

  def __init__(self, mixup: float = 0.0, cutmix: float = 0.0, *, classes: int, p: float = 1.0, cutmix_share: float = _CUTMIX_SHARE,
               group: int = 2, smoothing: float = 0.0) -> None:
    self._given = {"mixup": mixup, "cutmix": cutmix, "classes": classes, "p": p, "cutmix_share": cutmix_share, "group": group,
                   "smoothing": smoothing}
    probability = within(p, "p", 0, 1, "a probability, above 0 and at most 1")
    share = within(cutmix_share, "cutmix_share", 0, 1, "a share, above 0 and at most 1")
    if probability == 0 or share == 0:
      raise OptionError("p and cutmix_share must be above 0: leave out what is not wanted")
    self._options = _c.mix(
        size=ctypes.sizeof(_c.mix),
        mixup=_alpha(mixup, "mixup"),
        cutmix=_alpha(cutmix, "cutmix"),
        probability=probability,
        cutmix_share=share,
        smoothing=within(smoothing, "smoothing", 0, math.nextafter(1, 0), "a number of at least 0 and below 1"),
        group=whole(group, "group", 32, least=2),
        classes=whole(classes, "classes", least=1, most=_MOST_CLASSES))
    both = self._options.mixup and self._options.cutmix
    if not (self._options.mixup or self._options.cutmix or self._options.smoothing):
      raise OptionError("mixup, cutmix or smoothing must be above 0, or nothing would be done: leave out mix= instead")
    if not both and share != _CUTMIX_SHARE:
      raise OptionError("cutmix_share is of mixup and cutmix together, of which one is 0")

  def __repr__(self) -> str:
    return f"Mix({', '.join(f'{name}={value!r}' for name, value in self._given.items())})"

  def __reduce__(self) -> tuple[Any, ...]:
    return rebuilt, (Mix, self._given)


def _alpha(value: float, what: str) -> float:
  return 0.0 if real(value, what) == 0 else within(value, what, *_ALPHAS, f"0, or a number from {_ALPHAS[0]:g} to {_ALPHAS[1]:g}")


def given_plan(augment: Optional[Union[Augment, str]]) -> Optional[Augment]:
  """Of an option that may be text."""
  plan = augment if augment is None or isinstance(augment, Augment) else Augment(augment)
  if plan is not None and str(plan).count(" batch(") != len(plan._functions):
    raise OptionError(f"a text does not hold the functions of its batch(...) steps: {plan}; add them with Augment.batch")
  return plan
