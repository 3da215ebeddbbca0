"""Runs the cells of one context in __main__. `control` is the channel to the agent, descriptor 3.

Only what every cell needs is here; python_rich.py, compiled on first use, has the rest.
"""


def serve(control):
    import os
    import sys
    from _ast import Expr, Expression, PyCF_ALLOW_TOP_LEVEL_AWAIT, PyCF_ONLY_AST
    from _signal import SIGINT, signal
    from _thread import allocate_lock

    try:
        from _json import encode_basestring_ascii as quote
    except ImportError:
        from json import dumps as quote

    plain = (int, float, complex, bool, str, bytes)
    main = sys.modules['__main__'].__dict__
    pid = os.getpid()
    lock = allocate_lock()
    state = {'running': False, 'sending': False, 'interrupted': False}
    sources = {}
    count = 0
    library = control.read(int(control.readline()[1:]))
    rich = None

    def on_interrupt(number, frame):
        if state['sending']:
            state['interrupted'] = True
        elif state['running']:
            raise KeyboardInterrupt

    def send(text):
        """One frame; an interrupt waits until it is out."""
        data = text.encode('utf-8', 'surrogatepass')
        if len(data) > 16 << 20:
            raise ValueError(f'the result is too large: {len(data)} bytes')
        if os.getpid() != pid:
            return
        with lock:
            state['sending'] = True
            rest = b'j%d\n' % len(data) + data
            while rest:
                rest = rest[os.write(3, rest):]
            state['sending'] = False
        if state['interrupted']:
            state['interrupted'] = False
            if state['running']:
                raise KeyboardInterrupt

    def flush():
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                pass

    def extras():
        nonlocal rich
        if rich is None:
            rich = {'quote': quote, 'send': send, 'flush': flush, 'sources': sources}
            exec(compile(library, '<driver>', 'exec'), rich)
        return rich

    def display(*values, **options):
        """Shows values in the richest form that they have."""
        extras()['display'](*values, **options)

    class PyplotFinder:
        """Lets plt.show() show figures: set up when pyplot is imported."""

        @classmethod
        def find_spec(cls, name, path=None, target=None):
            if name != 'matplotlib.pyplot':
                return None
            sys.meta_path.remove(cls)
            spec = sys.modules['_frozen_importlib']._find_spec(name, path)
            if spec is None or spec.loader is None:
                return spec
            execute = spec.loader.exec_module

            def exec_module(module):
                execute(module)
                extras()['take_over_pyplot'](module)

            spec.loader.exec_module = exec_module
            return spec

    def evaluate(code):
        value = eval(code, main)
        if code.co_flags & 0x80:  # a coroutine: there is an await at the top level
            value = extras()['wait'](value)
        return value

    def execute(source, name):
        flags = PyCF_ALLOW_TOP_LEVEL_AWAIT
        try:
            tree = compile(source, name, 'exec', flags | PyCF_ONLY_AST, True)
        except SyntaxError:
            changed = extras()['without_magic'](source)
            if changed is None:
                raise
            tree = compile(changed, name, 'exec', flags | PyCF_ONLY_AST, True)
        last = None
        if tree.body and type(tree.body[-1]) is Expr and not source.rstrip().endswith(';'):
            last = Expression(tree.body.pop().value)
        evaluate(compile(tree, name, 'exec', flags, True))
        if last is None:
            return
        value = evaluate(compile(last, name, 'eval', flags, True))
        if value is None:
            return
        main['_'] = value
        if type(value) in plain:
            mime = '{"text/plain":' + quote(repr(value)) + '}'
        else:
            mime = extras()['mime'](value)
        flush()
        send('{"type":"result","count":%d,"data":%s}' % (count, mime))

    def run(source):
        name = f'<cell {count}>'
        sources[name] = source
        if 'linecache' in sys.modules or 'inspect' in source or 'traceback' in source:
            extras()['remember_sources']()
        failure = None
        try:
            state['running'] = True
            execute(source, name)
            if 'matplotlib.pyplot' in sys.modules:
                extras()['show_figures']()
        except BaseException as error:
            state['running'] = False
            failure = error
        state['running'] = False
        if os.getpid() != pid:
            # A child that the cell made came out of it: it has nothing more to do.
            flush()
            os._exit(0 if failure is None else 1)
        flush()
        if failure is not None:
            extras()['send_failure'](failure)
            del failure
        send('{"type":"done"}')

    def load(names):
        """Imports modules ahead of the first cell, which finds them without binding them."""
        for name in names.split():
            try:
                __import__(name)
            except BaseException as error:
                send(
                    '{"type":"error","ename":%s,"evalue":%s,"traceback":[]}'
                    % (quote(type(error).__name__), quote(f'import {name}: {error}'))
                )
                return
        flush()
        send('{"type":"ready"}')

    def take_on(entries):
        """Makes these the environment, whatever it was when this process started."""
        wanted = dict(entry.split(b'=', 1) for entry in entries.split(b'\0') if entry)
        wanted.setdefault(b'MPLBACKEND', b'Agg')
        present = os.environb
        for name in [name for name in present if name not in wanted]:
            del present[name]
        for name, value in wanted.items():
            if present.get(name) != value:
                present[name] = value
        send('{"type":"ready"}')

    for name in [name for name in main if not name.startswith('__')]:
        del main[name]
    main['display'] = display
    main['__name__'] = '__main__'
    main.pop('__file__', None)
    sys.argv = ['']
    sys.meta_path.insert(0, PyplotFinder)
    os.environ.setdefault('MPLBACKEND', 'Agg')
    os.set_inheritable(3, False)
    signal(SIGINT, on_interrupt)
    send('{"type":"ready"}')
    while True:
        header = control.readline()
        if not header:
            return
        body = control.read(int(header[1:]))
        # These come before the first cell only: this interpreter was started ahead.
        if header[:1] == b'd':
            os.chdir(body)
            send('{"type":"ready"}')
            continue
        if header[:1] == b'e':
            take_on(body)
            continue
        if header[:1] == b'm':
            load(body.decode())
            continue
        count += 1
        run(body.decode('utf-8', 'surrogatepass'))


serve(control)
