import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { fingerprintOf } from '../../../server/crashes/recorder.ts'
import { faultIn, lastLinesOf, noteFrom } from '../../../server/crashes/last-words.ts'
import { toRecord } from '../../../server/crashes/record.ts'

/** As the runtimes have written it. */
const TRACES: { language: string, text: string, error: string, causes?: string[], own: string[], others?: number }[] = [
  { language: 'Python', text: `Traceback (most recent call last):
  File "/srv/r1/app.py", line 6, in start
    load('{bad')
  File "/usr/lib/python3.11/json/__init__.py", line 346, in loads
    return _default_decoder.decode(s)
           ^^^^^^^^^^^^^^^^^^^^^^^^^^
json.decoder.JSONDecodeError: Expecting value: line 1 column 2 (char 1)

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/srv/r1/.venv/lib/python3.11/site-packages/uvicorn/main.py", line 9, in main
    run()
  File "/srv/r1/shop/app.py", line 8, in start
    raise RuntimeError('no config\\nsecond line') from e
RuntimeError: no config
second line
ERROR:    Application startup failed. Exiting.`, error: 'RuntimeError: no config\nsecond line',
    causes: ['json.decoder.JSONDecodeError: Expecting value: line 1 column 2 (char 1)'], own: ['start shop/app.py:8'],
    others: 1 },
  { language: 'Python that cannot be parsed',
    text: '  File "/srv/r1/app.py", line 1\n    def x(\n         ^\nSyntaxError: \'(\' was never closed',
    error: 'SyntaxError: \'(\' was never closed', own: ['null app.py:1'] },
  { language: 'a group of Python', text: `  + Exception Group Traceback (most recent call last):
  |   File "/srv/r1/app.py", line 2, in main
  |     raise ExceptionGroup('several', [error])
  | ExceptionGroup: several (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/srv/r1/app.py", line 9, in work
    |     raise ValueError('boom')
    | ValueError: boom
    +------------------------------------`, error: 'ValueError: boom', own: ['work app.py:9'] },
  { language: 'Python with faulthandler', text: `Fatal Python error: Segmentation fault

Current thread 0x00007f84cb9eab80 (most recent call first):
  File "/root/.pyenv/versions/3.11.7/lib/python3.11/ctypes/__init__.py", line 519 in string_at
  File "/srv/r1/app.py", line 3 in f`, error: 'Fatal Python error: Segmentation fault', own: ['f app.py:3'],
    others: 1 },
  { language: 'Go', text: `panic: first [recovered]
\tpanic: again first
[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x626fb1]

goroutine 1 [running]:
main.main.func1()
\t/srv/r1/main.go:12 +0x5b
panic({0x6a5c80?, 0x729120?})
\t/usr/local/go/src/runtime/panic.go:860 +0x13a
github.com/gin-gonic/gin.(*Context).Next(0xc000)
\t/root/go/pkg/mod/github.com/gin-gonic/gin@v1.9.1/context.go:174 +0x2b
example.com/shop/cart.(*Cart).Add(...)
\texample.com/shop/cart/cart.go:7
created by net/http.(*Server).Serve in goroutine 1
\t/usr/local/go/src/net/http/server.go:3285 +0x4b4
exit status 2`, error: 'panic: again first', causes: ['panic: first'],
    own: ['main.main.func1 main.go:12', 'example.com/shop/cart.(*Cart).Add example.com/shop/cart/cart.go:7'],
    others: 2 },
  { language: 'a fatal error of Go',
    text:
      'fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1 [chan receive]:\nmain.main()\n\t/srv/r1/main.go:4 +0x1d\n\ngoroutine 7 [select]:\nmain.other()\n\t/srv/r1/main.go:9 +0x1d',
    error: 'fatal error: all goroutines are asleep - deadlock!', own: ['main.main main.go:4'] },
  { language: 'Java', text: `Exception in thread "main" java.lang.IllegalStateException: no store
\tat com.shop.Server$Store.open(Server.java:4)
\tat org.springframework.boot.SpringApplication.run(SpringApplication.java:300)
\tat com.shop.Server.main(Server.java:7)
Caused by: java.lang.IndexOutOfBoundsException: Index: 3 Size: 1
\tat java.base/java.util.ImmutableCollections$List12.get(ImmutableCollections.java:585)
\t... 2 more`, error: 'java.lang.IllegalStateException: no store',
    causes: ['java.lang.IndexOutOfBoundsException: Index: 3 Size: 1'],
    own: ['com.shop.Server$Store.open com/shop/Server.java:4', 'com.shop.Server.main com/shop/Server.java:7'],
    others: 1 },
  { language: 'Rust', text: `
thread 'main' (27180) panicked at src/main.rs:2:326:
called \`Result::unwrap()\` on an \`Err\` value: Os { code: 98 }
stack backtrace:
   0: __rustc::rust_begin_unwind
             at /rustc/59807616e1fa2540724bfbac14d7976d7e4a3860/library/std/src/panicking.rs:689:5
   4: shop::main
             at ./src/main.rs:2:326
note: Some details are omitted, run with \`RUST_BACKTRACE=full\` for a verbose backtrace.`,
    error: 'panic: called `Result::unwrap()` on an `Err` value: Os { code: 98 }', own: ['shop::main src/main.rs:2'],
    others: 1 },
  { language: 'Rust without a backtrace',
    text:
      'thread \'main\' panicked at src/main.rs:2:5:\nboom\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace',
    error: 'panic: boom', own: ['null src/main.rs:2'] },
  { language: 'old Rust', text: 'thread \'main\' panicked at \'boom\', src/main.rs:2:5', error: 'panic: boom',
    own: ['null src/main.rs:2'] },
  { language: 'Bun', text: `1 | console.error(new Error('logged'))
                      ^
error: logged
      at /srv/r1/app.js:1:19

3 | async function later () {
4 |   throw new RangeError('fatal')
              ^
RangeError: fatal
 syscall: "listen",
   errno: 0,

      at later (/srv/r1/app.js:4:11)
      at run (/srv/r1/node_modules/hono/dist/hono.js:9:1)

Bun v1.4.5 (Linux x64)`, error: 'RangeError: fatal', own: ['later app.js:4'], others: 1 },
  { language: 'Bun without a module',
    text: 'error: Cannot find module \'./nope.js\' from \'/srv/r1/d.mjs\'\n\nBun v1.4.5 (Linux x64)',
    error: 'Error: Cannot find module \'./nope.js\' from \'/srv/r1/d.mjs\'', own: [] },
  { language: 'Deno, in colours',
    text: `\u001b[0m\u001b[1m\u001b[31merror\u001b[0m: Uncaught (in promise) TypeError: no config
function load (x) { throw new TypeError('no config', { cause: new Error('inner') }) }
\u001b[0m\u001b[31m                          ^\u001b[0m
    at \u001b[0m\u001b[1m\u001b[3mload\u001b[0m (file:///srv/r1/app.ts:1:27)
    at listen (ext:deno_net/01_net.js:1:7011)
Caused by: Error: inner
    at load (file:///srv/r1/app.ts:1:63)`, error: 'TypeError: no config', causes: ['Error: inner'],
    own: ['load app.ts:1'], others: 1 },
  { language: 'Node behind a shell', text: `/srv/r1/app.js:4
throw new RangeError('fatal')
^

RangeError: fatal
    at load (/srv/r1/app.js:4:7)
    at node:internal/main/run_main_module:28:49

Node.js v20.20.2`, error: 'RangeError: fatal', own: ['load app.js:4'], others: 1 },
  { language: 'Ruby',
    text:
      '/srv/r1/app.rb:3:in \'Shop#load\': no config (RuntimeError)\n\tfrom /usr/lib/ruby/gems/3.3.0/gems/puma-6.4.0/lib/puma.rb:7:in `run\'\n\tfrom /srv/r1/app.rb:7:in \'<main>\'',
    error: 'RuntimeError: no config', own: ['Shop#load app.rb:3', '<main> app.rb:7'], others: 1 },
  { language: 'PHP', text: `PHP Fatal error:  Uncaught RuntimeException: no config in /srv/r1/index.php:3
Stack trace:
#0 /srv/r1/vendor/slim/slim/App.php(7): load()
#1 /srv/r1/index.php(9): Slim\\App->run()
#2 {main}
  thrown in /srv/r1/index.php on line 3`, error: 'RuntimeException: no config',
    own: ['load index.php:3', 'null index.php:9'], others: 1 },
  { language: '.NET', text: `Unhandled exception. System.InvalidOperationException: no store
 ---> System.IO.IOException: no file
   --- End of inner exception stack trace ---
   at Shop.Program.Main(String[] args) in /srv/r1/Program.cs:line 5
   at System.Threading.Tasks.Task.Wait()`, error: 'System.InvalidOperationException: no store',
    causes: ['System.IO.IOException: no file'], own: ['Shop.Program.Main Program.cs:5'], others: 1 },
  { language: 'an assertion of C', text: 'server: src/main.c:7: main: Assertion `c == 1\' failed.',
    error: 'Assertion failed: c == 1', own: ['main src/main.c:7'] },
  { language: 'C++', text: 'terminate called after throwing an instance of \'std::runtime_error\'\n  what():  boom',
    error: 'std::runtime_error: boom', own: [] },
  { language: 'the C library', text: 'free(): double free detected in tcache 2',
    error: 'abort: free(): double free detected in tcache 2', own: [] }
]

for (const { language, text, error, causes = [], own, others = 0 } of TRACES) {
  test(`the last words of ${language} are its error, with the functions of the app`, () => {
    const note = noteFrom(['2026-11-27 listening on 8000', ...text.split('\n')])
    assert.ok(note)
    assert.equal(`${note.errorName}: ${note.errorMessage}`, error)
    assert.deepEqual(note.causes?.map(({ errorName, errorMessage }) => `${errorName}: ${errorMessage}`), causes)
    const { frames } = recordOf(text)
    assert.deepEqual(
      frames.filter(({ isInApp }) => isInApp).map(({ function: name, file, line }) => `${name} ${file}:${line}`),
      own
    )
    assert.equal(frames.filter(({ isInApp }) => !isInApp).length, others)
  })
}

test('an error that a program has lived with, or that it only tells of, is not why it ended', () => {
  const python = TRACES[0].text.split('\n')
  assert.equal(noteFrom([...python, ...Array.from({ length: 30 }, (_, n) => `answered request ${n}`)]), null)
  assert.equal(
    noteFrom(['2026/11/27 01:00:00 http: panic serving 127.0.0.1:5: boom',
      'listen tcp :80: bind: address already in use']),
    null
  )
  assert.equal(
    noteFrom([...python, 'Exception ignored in: <function f>', ...TRACES[0].text.split('\n').slice(0, 6),
      'KeyError: 1'])?.errorName,
    'RuntimeError'
  )
})

test('the last words of Bun are read to the end where a stack is cut off before them', () => {
  const text =
    '    at load (/srv/r1/a.js:1:1)\n1 | let x =\n        ^\nerror: Unexpected end of file\n    at /srv/r1/app.js:1:8\n\nBun v1.4.5 (Linux x64)'
  assert.equal(noteFrom(text.split('\n'))?.errorMessage, 'Unexpected end of file')
})

test('words of any length and kind are read in no time', () => {
  const hostile = ['', ' '.repeat(5000), `at ${'('.repeat(2000)}`, `  File "${'a'.repeat(5000)}`, 'a:1:in '.repeat(500),
    '\tat '.repeat(900), `${'a.'.repeat(1000)}: x`, '#0 '.repeat(800), 'error: '.repeat(700), 'a$.'.repeat(600),
    ' in x:'.repeat(300), `${'a:1:in \'x\': '.repeat(160)}\r!`]
  const began = performance.now()
  // A log is read from its last 64 kB on.
  for (const text of hostile) noteFrom(Array(32).fill(text.slice(0, 2000)))
  for (const { text } of TRACES) for (const end of hostile) noteFrom([...text.split('\n'), end])
  assert.ok(performance.now() - began < 5000)
  for (const { text } of TRACES) for (const line of text.split('\n')) noteFrom([line])
})

test('a fault of another language has one group, whatever its lines, addresses and release', () => {
  const go = TRACES[4].text
  const group = (text: string) => fingerprintOf(recordOf(text))
  assert.equal(group(go.replace(':12', ':99').replace('0xc000', '0xc111')), group(go))
  assert.notEqual(group(go.replace('Add', 'Remove')), group(go))
  const rust = TRACES[8].text
  assert.equal(group(rust.replace(':2:5', ':9:1')), group(rust))
  assert.notEqual(group(rust.replace('boom', 'no config')), group(rust), 'the file alone tells too little')
  const silent = (said: string) => fingerprintOf({ ...recordOf(''), said })
  assert.equal(silent('listen tcp :80: bind: address already in use'),
    silent('listen tcp :81: bind: address already in use'))
  assert.notEqual(silent('listen tcp :80: bind: address already in use'), silent('open shop.db: permission denied'))
})

/** `text`: of a program whose release is in /srv/r1 */
function recordOf (text: string) {
  return toRecord({ type: 'worker.exited', cause: 'crash', code: 1, signal: null }, { note: noteFrom(text.split('\n')),
    memoryKind: null, root: '/srv/r1', stderr: [], vitals: [], isProgram: true, at: 0, original: (frames) => frames })
}

test('a logged error is among the last lines however long its stack is, with its first place', () => {
  const frames = Array.from({ length: 12 }, (_, number) => `    at step${number} (/srv/shop/steps.js:${number + 1}:3)`)
  const lines = lastLinesOf(['starting', '\u001B[31merror\u001B[39m: The upload folder does not exist', ...frames,
    'info: Shutting down'])
  assert.deepEqual(lines, ['starting', 'error: The upload folder does not exist', frames[0], 'info: Shutting down'])
  assert.equal(faultIn(lines), 'error: The upload folder does not exist')
})

test('of an error that is logged with all that it has, the words are said, and what it was caused by; never only the bracket at its end', () => {
  const refused = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:1'), { errno: -111, code: 'ECONNREFUSED',
    syscall: 'connect', address: '127.0.0.1', port: 1 })
  const many = Object.assign(new Error('status 401'), {
    config: Object.fromEntries(
      Array.from({ length: 90 }, (_, index) => [`key${index}`, { authorization: `Bearer ${'x'.repeat(70)}` }])
    )
  })
  const cases: [string, string][] = [[`no database: ${inspect(refused)}`,
    'no database: Error: connect ECONNREFUSED 127.0.0.1:1'], [
    inspect(new TypeError('fetch failed', { cause: refused })),
    'TypeError: fetch failed (Error: connect ECONNREFUSED 127.0.0.1:1)'
  ], [inspect(new AggregateError([refused, refused])), 'AggregateError (Error: connect ECONNREFUSED 127.0.0.1:1)'], [
    inspect(many),
    'Error: status 401'
  ], [inspect({ error: 'bad config', file: 'x'.repeat(80) }), `{ error: 'bad config', file: '${'x'.repeat(80)}' }`], [
    'Error: DbError {\n    kind: Refused,\n    message: "cannot connect",\n}',
    'Error: DbError { kind: Refused, message: "cannot connect", }'
  ], [
    'Error: no store\n\nCaused by:\n    Connection refused (os error 111)\n\nStack backtrace:\n   0: anyhow::error\n             at /srv/x.rs:3:2',
    'Connection refused (os error 111)'
  ], [`2026/11/27 01:00:00 dial: connection refused${'\nmain.open\n\t/srv/main.go:10 +0x5b'.repeat(9)}`,
    '2026/11/27 01:00:00 dial: connection refused'], [
    `System.InvalidOperationException: no store${'\n   at Shop.Failed.Run() in /srv/x.cs:line 3'.repeat(9)}`,
    'System.InvalidOperationException: no store'
  ]]
  for (const [text, said] of cases) assert.equal(faultIn(lastLinesOf(['listening', ...text.split('\n'), ''])), said)
  assert.deepEqual(lastLinesOf(['  key: 1', '}']), ['  key: 1'])
})

test('what an error has does not hide that a program has ended by it', () => {
  const properties = Array.from({ length: 14 }, (_, index) => `  key${index}: 1,`)
  const lines = ['Error: no config', '    at load (file:///srv/r1/app.ts:1:27) {', ...properties,
    '  [cause]: Error: inner', '      at x (file:///srv/r1/app.ts:3:3)', '}']
  const note = noteFrom(lines)
  assert.deepEqual([note?.errorMessage, note?.stack], ['no config',
    'Error: no config\n    at load (file:///srv/r1/app.ts:1:27)'])
})
