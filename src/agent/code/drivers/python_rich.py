"""The part of the python driver that plain cells do without. Runs in a namespace of its own that
has `quote`, `send`, `flush` and `sources` (text of every cell by its name)."""

import sys
import traceback

REPRESENTATIONS = (
    ('_repr_html_', 'text/html'),
    ('_repr_markdown_', 'text/markdown'),
    ('_repr_svg_', 'image/svg+xml'),
    ('_repr_png_', 'image/png'),
    ('_repr_jpeg_', 'image/jpeg'),
    ('_repr_pdf_', 'application/pdf'),
    ('_repr_latex_', 'text/latex'),
    ('_repr_json_', 'application/json'),
    ('_repr_javascript_', 'application/javascript'),
)
loop = None


def remember_sources():
    """Gives tracebacks and inspect the lines of the cells."""
    import linecache

    for name, source in sources.items():
        if name not in linecache.cache:
            lines = [line + '\n' for line in source.splitlines()]
            linecache.cache[name] = (len(source), None, lines, name)


def encode(value):
    from json import dumps

    return dumps(value, default=repr)


def binary(value):
    from base64 import b64encode

    return b64encode(value).decode() if isinstance(value, (bytes, bytearray)) else value


def call(value, method):
    """What a representation method of the value's type gives, or None."""
    function = getattr(type(value), method, None)
    if not callable(function):
        return None
    try:
        result = function(value)
    except NotImplementedError:
        return None
    # Some give data and metadata.
    return result[0] if isinstance(result, tuple) and result else result


def figure_png(figure):
    from io import BytesIO

    out = BytesIO()
    figure.savefig(out, format='png', bbox_inches='tight')
    return out.getvalue()


def forms(value):
    """All forms of a value: MIME type to text, or to base64 of bytes."""
    data = {}
    bundle = call(value, '_repr_mimebundle_')
    if isinstance(bundle, dict):
        data.update((str(key), binary(item)) for key, item in bundle.items())
    for method, kind in REPRESENTATIONS:
        if kind in data:
            continue
        form = call(value, method)
        if form is not None:
            data[kind] = binary(form)
    if 'image/png' not in data and is_figure(value):
        data['image/png'] = binary(figure_png(value))
    data.setdefault('text/plain', repr(value))
    return data


def is_figure(value):
    module = sys.modules.get('matplotlib.figure')
    return module is not None and isinstance(value, module.Figure)


def mime(value):
    data = forms(value)
    if is_figure(value) and 'matplotlib.pyplot' in sys.modules:
        # It was shown now: not again at the end of the cell.
        sys.modules['matplotlib.pyplot'].close(value)
    return encode(data)


def display(*values, raw=False, **options):
    for value in values:
        data = encode(value) if raw and isinstance(value, dict) else mime(value)
        flush()
        send('{"type":"display","data":%s}' % data)


def show_figures(*arguments, **options):
    """Shows and closes the figures that are open."""
    pyplot = sys.modules['matplotlib.pyplot']
    for number in list(getattr(pyplot, 'get_fignums', list)()):
        display(pyplot.figure(number))
    pyplot.close('all')


def take_over_pyplot(module):
    module.show = show_figures


def wait(coroutine):
    """Runs a cell that awaits; its event loop stays for the next one."""
    global loop
    import asyncio

    if loop is None or loop.is_closed():
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
    task = loop.create_task(coroutine)
    try:
        return loop.run_until_complete(task)
    except BaseException:
        if not task.done():
            task.cancel()
            loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
        raise


def shell(command):
    """`!command` of a cell."""
    import subprocess

    flush()
    subprocess.run(command, shell=True, stdin=subprocess.DEVNULL)


def pip(arguments):
    """`%pip` of a cell."""
    import shlex

    shell(f'{shlex.quote(sys.executable)} -m pip {arguments}')


def without_magic(source):
    """The cell with its `!command`, `%pip` and `%matplotlib` lines as python, or None."""
    changed = False
    lines = []
    for line in source.split('\n'):
        text = line.lstrip()
        indent = line[: len(line) - len(text)]
        if text.startswith('!'):
            line = f'{indent}__import__("sys").modules["__main__"].__cell_shell__({text[1:]!r})'
        elif text.startswith('%pip '):
            line = f'{indent}__import__("sys").modules["__main__"].__cell_pip__({text[5:]!r})'
        elif text.startswith('%matplotlib'):
            line = f'{indent}pass'
        else:
            lines.append(line)
            continue
        changed = True
        lines.append(line)
    if not changed:
        return None
    main = sys.modules['__main__']
    main.__cell_shell__ = shell
    main.__cell_pip__ = pip
    return '\n'.join(lines)


def send_failure(error):
    """The error as Jupyter has it, without the frames of this driver."""
    remember_sources()
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == '<driver>':
        trace = trace.tb_next
    try:
        value = str(error)
    except Exception:
        value = '<the error cannot be shown>'
    try:
        described = traceback.TracebackException(type(error), error, trace)
        described.stack = traceback.StackSummary.from_list(
            [frame for frame in described.stack if frame.filename != '<driver>']
        )
        lines = [line.rstrip('\n') for line in described.format()]
    except Exception:
        lines = [type(error).__name__ + ': ' + value]
    value = value[: 1 << 20]
    if sum(map(len, lines)) > 1 << 20:
        lines = [line[: 1 << 16] for line in lines[:4] + lines[-8:]]
    send(
        '{"type":"error","ename":%s,"evalue":%s,"traceback":[%s]}'
        % (quote(type(error).__name__), quote(value), ','.join(map(quote, lines)))
    )
