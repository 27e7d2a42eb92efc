// Starts a program in its own place: whoever has started this process gets what answers for the program's bind(2) and
// listen(2), and the program then has its pid, its output and its parent.
import { readFileSync, readSync } from 'node:fs'
import { loadPosix } from '../system/posix.ts'
import { limitAsShell } from '../system/shell-limits.ts'
import { loadSystemCalls, type SystemCalls } from './system-calls.ts'

/** A Unix socket to whoever has started this, and a pipe with what to start. Node closes both for the program. */
const CHANNEL = 3
const ORDER = 4
const STANDARD_STREAMS = 3
/** Above what a program numbers its own descriptors with. */
const LISTENER_ABOVE = 200
/** Shells exit with this code too where a command cannot be executed. */
const NOT_EXECUTABLE = 126

const calls = loadSystemCalls()
if (calls !== null) launch(JSON.parse(readFileSync(ORDER, 'utf8')), calls)
// Only where no other program has taken the place of this one.
process.exitCode = NOT_EXECUTABLE

/** `args`: its own name is the first */
function launch (
  { file, args, env, shell }: { file: string, args: string[], env: Record<string, string>, shell?: string },
  system: SystemCalls
) {
  const { listener, reason } = system.askBeforeBind(LISTENER_ABOVE)
  system.send(CHANNEL, JSON.stringify({ reason }), listener)
  // Nobody is there any more.
  if (readSync(CHANNEL, Buffer.alloc(1)) === 0) return
  // Here, as Node has raised one of its own at its start.
  limitAsShell(shell)
  const failed = loadPosix()?.execute(file, args, Object.entries(env).map(([name, value]) => `${name}=${value}`),
    STANDARD_STREAMS)
  system.send(CHANNEL, JSON.stringify({ failed }))
}
