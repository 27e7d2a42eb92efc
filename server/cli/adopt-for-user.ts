import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { DeckError } from '../errors.ts'
import { locatePm2 } from '../import/running-pm2.ts'
import { factsOf } from '../programs/holder.ts'
import { openRootLine, ROOT_LINE } from '../programs/root-line.ts'
import { oneLine } from '../system/one-line.ts'
import { ownerOfProcess } from '../system/process-owner.ts'
import { userId } from '../system/user.ts'
import { stopUnit, unitAround } from '../systemd/unit-of.ts'
import { processOf } from './adoptable.ts'
import { scriptPath } from '../system/built.ts'
import type { Readable } from 'node:stream'
import type { Options } from './adopt-program.ts'
import type { Terminal } from './program.ts'

const AS_USER = scriptPath('as-user.js')
/** Root's variables that are for everybody; the rest may be secret. */
const PASSED = /^(PATH|TERM|TZ|LANG|LANGUAGE|LC_\w+|CLUSTERDECK_(?!TOKEN|URL)\w+)$/

/**
 * Where root takes over what another user runs, that user does it, in a process without any right of root: all that is
 * read, asked, written and run may be what this user has made of it. Root keeps the line to it alone.
 * @returns the exit code; null: it is not for another user
 * @throws {DeckError} usage, not-possible
 */
export async function adoptForUser (options: Options, terminal: Terminal): Promise<number | null> {
  if (userId() !== 0) return null
  const { pid, home } = options.pm2 === undefined ? { pid: processOf(options), home: undefined } : locatePm2(terminal)
  const owner = ownerOfProcess(pid)
  if (owner?.user === 0 || factsOf(pid) === null) return null
  if (!owner?.isOpen)
    throw new DeckError('not-possible',
      `process ${pid} has other rights than its user, or has begun with others (setuid, setcap, AmbientCapabilities): what that user may not look into is not taken over for that user`)
  const unit = home === undefined ? unitAround(pid) : null
  const line = openRootLine({ user: owner.user,
    stop: async () => unit && !unit.isOfUser ? await stopUnit(unit) : 'it is no service of the system' })
  if (line === null)
    throw new DeckError('not-possible',
      'what another user runs can be taken over on Linux alone, on x86-64 and arm64, with the package koffi, which npm installs where it can')
  const env = Object.entries(terminal.env).filter(([name]) => PASSED.test(name))
  // In a session of its own: what shares the terminal of root could type into it.
  const child = spawn(process.execPath, [AS_USER, String(owner.user), owner.groups.join(), terminal.script, 'adopt',
    ...wordsOf(options)], { cwd: terminal.cwd,
    env: { ...Object.fromEntries(env), ...(home !== undefined && { PM2_HOME: home }), [ROOT_LINE]: '1' },
    detached: true, stdio: ['ignore', 'pipe', 'pipe', line.theirs, 'pipe'] })
  line.serve(child)
  for (const stream of ['stdout', 'stderr'] as const) {
    createInterface(child[stream] as Readable).on('line', (text) => {
      terminal[stream].write(`${oneLine(text)}\n`)
    })
  }
  const [code] = await once(child, 'close')
  line.close()
  return code ?? 1
}

function wordsOf (options: Options): string[] {
  return Object.entries(options).filter(([name]) => name !== 'wait').flatMap(([name, value]) =>
    value === true ? [`--${name}`] : Array.isArray(value) ? [`--${name}`, ...value] : [`--${name}=${value}`]
  )
}
