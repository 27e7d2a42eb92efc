import { spawn, spawnSync } from 'node:child_process'
import { createEmulator } from './emulator.js'
import { until } from './until.js'

/** Runs a program in a terminal of its own, and says on descriptor 4 what has become of both. */
const IN_A_TERMINAL = `
import fcntl, json, os, pty, select, struct, sys, termios
terminal, end = pty.openpty()
def resize(rows, columns): fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))
def say(**what): os.write(4, (json.dumps(what) + '\\n').encode())
def modes(): return termios.tcgetattr(end)[:4]
resize(int(sys.argv[1]), int(sys.argv[2]))
before = modes()
child = os.fork()
if child == 0:
    os.setsid()
    fcntl.ioctl(end, termios.TIOCSCTTY, 0)
    for descriptor in (0, 1, 2): os.dup2(end, descriptor)
    os.closerange(3, 1024)
    os.execvp(sys.argv[3], sys.argv[3:])
say(pid=child)
sources = [terminal, 0, 3]
status = None
while True:
    ready = select.select(sources, [], [], 0 if status is not None else 0.02)[0]
    if terminal in ready: os.write(1, os.read(terminal, 65536))
    if 0 in ready:
        typed = os.read(0, 4096)
        if typed: os.write(terminal, typed)
        else: sources.remove(0)
    if 3 in ready:
        for order in os.read(3, 4096).decode().split('\\n'):
            if order.startswith('size'):
                resize(*map(int, order.split()[1:]))
            elif order == 'hangup':
                os.close(terminal)
                sources.remove(terminal)
        if 3 in sources and not ready: sources.remove(3)
    if status is None:
        ended, found = os.waitpid(child, os.WNOHANG | os.WUNTRACED)
        if ended and os.WIFSTOPPED(found): say(isStopped=True, isRestored=modes() == before)
        elif ended: status = found
    elif terminal not in ready:
        break
say(code=os.waitstatus_to_exitcode(status), isRestored=terminal not in sources or modes() == before)
`

export const lacksPython = spawnSync('python3', ['-c', 'import pty, os; os.waitstatus_to_exitcode']).status !== 0

/**
 * @param {import('node:test').TestContext} t
 * @param {string[]} words the program and its arguments
 * @param {{ rows?: number, columns?: number, env?: Record<string, string | undefined>, cwd?: string }} [how]
 */
export function startInTerminal (t, words, { rows = 24, columns = 80, env = {}, cwd } = {}) {
  const child = spawn('python3', ['-c', IN_A_TERMINAL, String(rows), String(columns), ...words], { env: { ...process.env, ...env }, cwd, stdio: ['pipe', 'pipe', 'inherit', 'pipe', 'pipe'] })
  const [input, output, , orders, reports] = /** @type {any} */ (child.stdio)
  const emulator = createEmulator({ rows, columns })
  /** @type {{ pid?: number, isStopped?: boolean, isRestored?: boolean, code?: number }} */
  let told = {}
  let bytes = 0
  output.setEncoding('utf8').on('data', (/** @type {string} */ text) => {
    bytes += Buffer.byteLength(text)
    emulator.write(text)
  })
  let rest = ''
  reports.setEncoding('utf8').on('data', (/** @type {string} */ text) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) told = { ...told, ...JSON.parse(line) }
  })
  t.after(() => {
    if (told.pid && told.code === undefined) process.kill(told.pid, 'SIGKILL')
    child.kill('SIGKILL')
  })

  return {
    emulator,
    bytes: () => bytes,
    told: () => told,
    type: (/** @type {string} */ text) => { input.write(text) },
    signal: (/** @type {NodeJS.Signals} */ signal) => process.kill(Number(told.pid), signal),
    hangUp: () => { orders.write('hangup\n') },
    resize (/** @type {number} */ nextRows, /** @type {number} */ nextColumns) {
      emulator.resize(nextRows, nextColumns)
      orders.write(`size ${nextRows} ${nextColumns}\n`)
    },

    /** @param {RegExp | string} expected */
    async shows (expected) {
      const isThere = () => typeof expected === 'string' ? emulator.text().includes(expected) : expected.test(emulator.text())
      await until(isThere, `${expected} on the screen`).catch((error) => { throw new Error(`${error.message}\n${emulator.text()}`) })
    },

    stopped: () => until(() => Boolean(told.isStopped), 'it to be stopped'),

    /** @returns {Promise<{ code: number, isRestored: boolean }>} as told at its end */
    async ended () {
      await until(() => told.code !== undefined, 'its end')
      return { code: Number(told.code), isRestored: Boolean(told.isRestored) }
    }
  }
}
