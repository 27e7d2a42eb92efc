import { execFile, type ChildProcess, type ExecFileOptionsWithStringEncoding } from 'node:child_process'
import os from 'node:os'
import { promisify } from 'node:util'

const SIGNALS = ['SIGHUP', 'SIGINT', 'SIGTERM'] as const
const TERM_GRACE_MS = 10_000

type Ending = () => Promise<unknown>

/** What is still to be ended, of all owners, the oldest first. */
const all: Set<Set<Ending>> = new Set()
let isEnding = false

/**
 * Owns what a program starts, as a test owns what it starts. All of it ends with the program too, and then its
 * temporary folders go: also where a signal or an error ends that.
 */
export function createOwner () {
  const endings: Set<Ending> = new Set()
  if (all.size === 0) endWithProgram()
  all.add(endings)
  return { after, spawned, run, end }

  /** `end`: called once; told in the very turn in which there is something to end */
  function after (end: () => unknown) {
    addEnding(end)
  }

  /** `child`: just spawned @returns by SIGTERM, or SIGKILL if it takes too long */
  function spawned (child: ChildProcess): Ending {
    const exited = new Promise((resolve) => child.once('exit', resolve))
    const ending = addEnding(async () => {
      if (child.pid === undefined) return
      child.kill('SIGTERM')
      const timer = setTimeout(() => child.kill('SIGKILL'), TERM_GRACE_MS)
      await exited
      clearTimeout(timer)
    })
    child.once('exit', () => endings.delete(ending))
    return ending
  }

  function run (program: string, args: string[], options: ExecFileOptionsWithStringEncoding = { encoding: 'utf8' }) {
    const running = promisify(execFile)(program, args, options)
    spawned(running.child)
    return running
  }

  /** The newest first. Does not return where the program ends: what it would tell then is not true. */
  async function end () {
    await endAll(endings)
    if (isEnding) await new Promise(() => {})
  }

  function addEnding (end: () => unknown): Ending {
    let ended: Promise<unknown> | undefined
    const ending = () => (ended ??= (async () => end())())
    endings.add(ending)
    return ending
  }
}

/** @throws {unknown} the first error, after all have ended */
async function endAll (endings: Set<Ending>) {
  const errors: unknown[] = []
  for (let ending; (ending = [...endings].at(-1)); endings.delete(ending))
    await ending().catch((error) => errors.push(error))
  if (errors.length > 0) throw errors[0]
}

function endWithProgram () {
  for (const signal of SIGNALS) process.on(signal, () => endProgram(128 + os.constants.signals[signal]))
  process.on('uncaughtException', (error) => {
    // What fails while all ends fails for that.
    if (!isEnding) console.error(error)
    endProgram(1)
  })
}

/** A terminal and npm both pass on a signal, so it may come twice. */
async function endProgram (code: number) {
  if (isEnding) return
  isEnding = true
  // What goes on meanwhile may start something new.
  for (let endings; (endings = [...all].findLast(({ size }) => size > 0));) await endAll(endings).catch(console.error)
  process.exit(code)
}
