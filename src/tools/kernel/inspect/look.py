# Describes variables of a kernel. Runs no code of theirs: no `__repr__`, `__len__` or property of a class that is not known
# to be quick, and nothing that computes or copies as a whole what is large or lazy.
import base64, collections, difflib, itertools, json, sys, time, types

SHORT, LONG = 120, 2000
MAX_VARIABLES, MAX_ATTRIBUTES, MAX_ITEMS = 200, 40, 50
SECONDS = 2.0
# Classes of these modules tell their shape without computing anything.
SHAPED = {"cupy", "dask", "h5py", "jax", "jaxlib", "polars", "pyarrow", "scipy", "sparse", "tensorflow", "torch", "xarray", "zarr"}
# Classes of these modules have quick texts.
PLAIN = {"_decimal", "datetime", "decimal", "fractions", "ipaddress", "pathlib", "re", "uuid", "zoneinfo"}
BRACKETS = {list: ("[", "]"), tuple: ("(", ")"), set: ("{", "}"), frozenset: ("{", "}"), dict: ("{", "}"), collections.deque: ("[", "]")}


def root(cls):
    module = type.__dict__["__module__"].__get__(cls)
    return module.split(".")[0] if type(module) is str else ""


def type_name(value):
    cls = type(value)
    return cls.__name__ if root(cls) in ("builtins", "__main__", "") else root(cls) + "." + cls.__name__


def known(module, name, value):
    """Whether a value is of a class of a module, if that is loaded at all."""
    cls = getattr(sys.modules.get(module), name, None)
    return cls is not None and cls in type(value).__mro__


def base(value):
    return next((cls for cls in type(value).__mro__ if cls in BRACKETS), None)


def is_class(value):
    return type in type(value).__mro__


def members(value):
    if is_class(value):
        return dict(type.__dict__["__dict__"].__get__(value))
    try:
        found = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return found if type(found) is dict else {}


def cut(text, room):
    return text if len(text) <= room else text[: max(room - 3, 0)] + "..."


def show(value, room, depth=3):
    cls = type(value)
    if value is None or cls in (bool, float, complex, range):
        return cut(repr(value), room)
    if int in cls.__mro__ and not known("enum", "Enum", value):
        bits = int.bit_length(value)
        return cut(int.__repr__(value), room) if bits < 4000 else "an integer of %d bits" % bits
    for text in (str, bytes, bytearray):
        if text in cls.__mro__:
            return cut(repr(text.__getitem__(value, slice(room + 1))), room)
    if root(cls) in PLAIN:
        return cut(repr(value), room)
    if base(value):
        return show_items(value, room, depth)
    if cls in quick_classes():
        return cut(str(value), room)
    if known("numpy", "generic", value):
        item = value.item()
        return show(item, room, depth) if type(item) is not cls else cls.__name__
    if is_array(value):
        return "%s: %s" % (value.dtype, show_some(value, room, depth))
    if known("pandas", "DataFrame", value):
        return cut(", ".join("%s %s" % (name, value.dtypes.iloc[at]) for at, name in enumerate(value.columns[:20])), room)
    if known("torch", "Tensor", value):
        return show_tensor(value, room, depth)
    if cls in (types.FunctionType, types.MethodType):
        code = cls is types.MethodType and getattr(value.__func__, "__code__", None) or getattr(value, "__code__", None)
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if code else ()
        return cut("%s(%s)" % (value.__name__, ", ".join(names)), room)
    if cls is types.ModuleType:
        return str(vars(value).get("__name__"))
    if is_class(value):
        return cut("class %s(%s)" % (value.__name__, ", ".join(of.__name__ for of in value.__bases__)), room)
    if known("enum", "Enum", value):
        return "%s.%s" % (cls.__name__, members(value).get("_name_"))
    if BaseException in cls.__mro__:
        return cls.__name__ + show(BaseException.args.__get__(value), room, depth)
    if depth and members(value) and root(cls) not in SHAPED:
        fields = ("%s=%s" % (name, show(of, room // 2, depth - 1)) for name, of in first(members(value).items()) if str(name)[:1] != "_")
        return "%s(%s)" % (cls.__name__, joined(fields, room))
    return "<%s>" % cls.__name__


def quick_classes():
    """Classes of libraries whose texts are short and quick, as far as they are loaded."""
    named = [("pandas", "Timestamp"), ("pandas", "Timedelta"), ("pandas", "Period"), ("pandas", "Interval"), ("numpy", "dtype"), ("numpy", "datetime64"), ("numpy", "timedelta64")]
    named += [("matplotlib.figure", "Figure"), ("matplotlib.axes", "Axes")]
    pandas = sys.modules.get("pandas")
    return [getattr(sys.modules.get(module), name, None) for module, name in named] + [type(getattr(pandas, name, None)) for name in ("NaT", "NA")]


def is_array(value):
    column = known("pandas", "Series", value) or known("pandas", "Index", value) or known("pandas.api.extensions", "ExtensionArray", value)
    return column or known("numpy", "ndarray", value)


def first(items, count=MAX_ITEMS):
    return itertools.islice(items, count)


def joined(texts, room):
    out, used = [], 0
    for text in texts:
        if used + len(text) > room and out:
            return ", ".join(out) + ", ..."
        out.append(cut(text, room))
        used += len(text) + 2
    return ", ".join(out)


def show_items(value, room, depth):
    kind = base(value)
    opening, closing = BRACKETS[kind]
    if not depth:
        return opening + "..." + closing
    names = vars(type(value)).get("_fields")
    each = lambda item: show(item, room // 2, depth - 1)
    if kind is dict:
        texts = ("%s: %s" % (each(key), each(of)) for key, of in first(dict.items(value)))
    elif kind is tuple and type(names) is tuple:
        opening = type(value).__name__ + opening
        texts = ("%s=%s" % (name, each(item)) for name, item in zip(names, tuple.__iter__(value)))
    else:
        texts = (each(item) for item in first(kind.__iter__(value)))
    text = joined(texts, room)
    return opening + text + (", ..." if kind.__len__(value) > MAX_ITEMS and not text.endswith("...") else "") + closing


def show_some(value, room, depth):
    """The first items of an array or a column."""
    if known("numpy", "ndarray", value):
        some = sys.modules["numpy"].ndarray.flat.__get__(value)[:20].tolist()
        length = value.size
    else:
        some, length = (value.iloc if known("pandas", "Series", value) else value)[:20].tolist(), len(value)
    text = show(some, room, depth)
    return text if length <= len(some) or text.endswith("...]") else text[:-1] + ", ...]"


def show_tensor(value, room, depth):
    text = "%s on %s" % (value.dtype, value.device)
    if value.device.type == "cpu" and str(value.layout) == "torch.strided" and value.is_contiguous():
        text += ": " + show(value.detach().view(-1)[:10].tolist(), room, depth)
    return cut(text, room)


def shape(value):
    kind = base(value)
    if kind:
        return [kind.__len__(value)]
    for text in (str, bytes, bytearray):
        if text in type(value).__mro__:
            return [text.__len__(value)]
    if root(type(value)) in SHAPED or root(type(value)) in ("numpy", "pandas", "geopandas"):
        found = getattr(value, "shape", None)
        return [size if type(size) is int else None for size in found] if found is not None else None


def size(value):
    """Bytes, without what a container refers to."""
    if known("pandas", "DataFrame", value):
        return int(value.memory_usage().sum())
    if known("torch", "Tensor", value):
        return value.numel() * value.element_size()
    if root(type(value)) in ("numpy", "pandas", "h5py", "xarray", "pyarrow"):
        found = getattr(value, "nbytes", None)
        return int(found) if found is not None else None
    return sys.getsizeof(value) if root(type(value)) in ("builtins", "collections") else None


def attempt(describe, *arguments):
    try:
        return describe(*arguments)
    except Exception as error:
        return None if describe is not show else "<%s; it cannot be shown: %s>" % (type(arguments[0]).__name__, type(error).__name__)


def described(name, value, room=SHORT):
    return {
        "name": name,
        "type": type_name(value),
        "shape": attempt(shape, value),
        "size": attempt(size, value),
        "preview": attempt(show, value, room),
        "imported": imported(value),
    }


def imported(value):
    """The module of a function or a class, unless the user wrote it."""
    if not is_class(value) and type(value) not in (types.FunctionType, types.BuiltinFunctionType):
        return None
    module = type.__dict__["__module__"].__get__(value) if is_class(value) else value.__module__
    return module.split(".")[0] if type(module) is str and module not in ("__main__", "builtins") else None


def attributes(value):
    """The columns of a table; the attributes of an object, the names of a module or a class. And how many more there are."""
    if known("pandas", "DataFrame", value):
        columns = first(enumerate(value.columns), MAX_ATTRIBUTES)
        shown = [
            {"name": str(name), "type": str(value.dtypes.iloc[at]), "preview": show_some(value.iloc[:20, at], SHORT, 2)}
            for at, name in columns
        ]
        return shown, len(value.columns) - len(shown)
    if base(value) or is_array(value) or root(type(value)) in SHAPED:
        return [], 0
    found = [(name, of) for name, of in first(members(value).items(), 10 * MAX_ATTRIBUTES) if str(name)[:1] != "_"]
    if type(value) is types.ModuleType or is_class(value):
        found.sort(key=lambda item: str(item[0]))
    elif root(type(value)) == "__main__":
        # The methods of libraries are in their documentation.
        found += [(name, of) for name, of in vars(type(value)).items() if name[:1] != "_" and type(of) is types.FunctionType]
    shown = [{"name": str(name), "type": type_name(of), "preview": attempt(show, of, SHORT)} for name, of in first(found, MAX_ATTRIBUTES)]
    return shown, len(found) - len(shown)


def details(name, value):
    found = described(name, value, LONG)
    found["attributes"], found["more_attributes"] = attempt(attributes, value) or ([], 0)
    if known("pandas", "DataFrame", value):
        found["preview"] = None
    doc = value.__doc__ if type(value) is types.FunctionType else members(value).get("__doc__")
    if type(doc) is str:
        found["doc"] = cut(doc.strip(), 500)
    return found


def look(namespace, request):
    request = json.loads(base64.b64decode(request))
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    hidden = getattr(shell, "user_ns_hidden", {})
    everything = list(namespace.items())
    names = [name for name, of in everything if type(name) is str and name[:1] != "_" and not (name in hidden and hidden[name] is of)]
    wanted, answer = request.get("name"), {}
    if wanted is not None:
        if wanted in namespace:
            answer["variables"] = [details(wanted, namespace[wanted])]
        else:
            answer["near"] = difflib.get_close_matches(wanted, names, 5, 0.5) or names[:5]
    else:
        until, variables = time.monotonic() + SECONDS, []
        for name in names[:MAX_VARIABLES]:
            if time.monotonic() > until:
                break
            if name in namespace:
                variables.append(described(name, namespace[name]))
        answer.update(variables=variables, left_out=names[len(variables):][:MAX_VARIABLES], count=len(names))
    return base64.b64encode(json.dumps(answer).encode()).decode()
