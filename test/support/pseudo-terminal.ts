import { spawn, spawnSync } from 'node:child_process'
import { createEmulator } from './emulator.ts'
import { until } from './until.ts'
import type { Duplex } from 'node:stream'
import type { TestContext } from 'node:test'

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
        ended, found = os.waitpid(child, os.WNOHANG)
        if ended: status = found
    elif terminal not in ready:
        break
say(code=os.waitstatus_to_exitcode(status), isRestored=terminal not in sources or modes() == before)
`

export const lacksPython = spawnSync('python3', ['-c', 'import pty, os; os.waitstatus_to_exitcode']).status !== 0

/** `words`: the program and its arguments */
export function startInTerminal (t: TestContext, words: string[],
  { rows = 24, columns = 80 }: { rows?: number, columns?: number } = {})
{
  const child = spawn('python3', ['-c', IN_A_TERMINAL, String(rows), String(columns), ...words], {
    stdio: ['pipe', 'pipe', 'inherit', 'pipe', 'pipe']
  })
  const [input, output, , orders, reports] = child.stdio as unknown as Duplex[]
  const emulator = createEmulator({ rows, columns })
  let told: { pid?: number, isRestored?: boolean, code?: number } = {}
  output.setEncoding('utf8').on('data', emulator.write)
  let rest = ''
  reports.setEncoding('utf8').on('data', (text: string) => {
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
    type: (text: string) => {
      input.write(text)
    },
    signal: (signal: NodeJS.Signals) => process.kill(Number(told.pid), signal),
    hangUp: () => {
      orders.write('hangup\n')
    },
    resize (nextRows: number, nextColumns: number) {
      emulator.resize(nextRows, nextColumns)
      orders.write(`size ${nextRows} ${nextColumns}\n`)
    },

    async shows (expected: RegExp | string) {
      const isThere = () =>
        typeof expected === 'string' ? emulator.text().includes(expected) : expected.test(emulator.text())
      await until(isThere, `${expected} on the screen`).catch((error) => {
        throw new Error(`${error.message}\n${emulator.text()}`)
      })
    },

    /** @returns as told at its end */
    async ended (): Promise<{ code: number, isRestored: boolean }> {
      await until(() => told.code !== undefined, 'its end')
      return { code: Number(told.code), isRestored: Boolean(told.isRestored) }
    }
  }
}
