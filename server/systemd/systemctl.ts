import { execFile } from 'node:child_process'
import { attempt, DeckError } from '../errors.ts'
import { oneLine } from '../system/one-line.ts'
import { withoutOwnVariables } from '../system/own-variables.ts'
import { serviceOf } from './unit-of.ts'
import type { Scope } from './unit.ts'

export type Systemctl = ReturnType<typeof createSystemctl>

const MAX_OUTPUT_BYTES = 1024 * 1024
/** A stop waits for the answer of systemd no longer than this. */
const ANSWER_WITHIN_MS = 1000

/**
 * The service manager, as its own command line has it: the machine's, or that of the user who asks.
 * @param options `patienceMs`: 0: as long as it takes
 */
export function createSystemctl (
  { scope, env = process.env, patienceMs = 0 }: { scope: Scope, env?: Record<string, string | undefined>,
    patienceMs?: number }
) {
  const own = scope === 'user' ? ['--user'] : []

  return {
    /** @returns as one would type it */
    line: (...words: string[]): string => ['systemctl', ...own, ...words].join(' '),

    logLine: (unit: string) => ['journalctl', ...own, '-u', unit].join(' '),

    /** @throws {DeckError} not-possible: nobody is there to be asked */
    async check () {
      const { code, reason } = await runProgram('systemctl', [...own, 'show', '--property=Version'])
      if (code === 0) return
      const hint = scope === 'user'
        ? '; a service manager of one\'s own is there after a login of its user, not after su or sudo'
        : ''
      throw new DeckError('not-possible', `no systemd to ask here: ${reason}${hint}`)
    },

    /** Tells whether it runs, or is about to */
    async isActive (unit: string): Promise<boolean> {
      const { stdout } = await runProgram('systemctl', [...own, 'is-active', unit])
      return ['active', 'reloading', 'activating'].includes(stdout.trim())
    },

    /** Tells whether it is being stopped only to be started again, with sockets that it has stored */
    async isRestarting (unit: string): Promise<boolean> {
      const [{ stdout }, { NFileDescriptorStore }] = await Promise.all([
        runProgram('systemctl', [...own, 'list-jobs', '--no-legend', unit]),
        this.properties(unit, ['NFileDescriptorStore'])
      ])
      // The columns are job, unit, type and state.
      return / restart +running *$/m.test(stdout) && Number(NFileDescriptorStore) > 0
    },

    /** @throws {DeckError} start-failed */
    async order (...words: string[]) {
      const { code, reason } = await runProgram('systemctl', [...own, ...words])
      if (code !== 0) throw new DeckError('start-failed', `${this.line(...words)} failed: ${reason}`)
    },

    /** @returns those that it tells */
    async properties (unit: string, properties: readonly string[]): Promise<Record<string, string>> {
      const { stdout } = await runProgram('systemctl', [...own, 'show', unit, `--property=${properties.join(',')}`])
      return Object.fromEntries(Array.from(stdout.matchAll(/^(\w+)=(.+)$/gm), ([, name, value]) => [name, value]))
    },

    /** Tells whether its service manager runs without a login too */
    async lingers (user: string | number): Promise<boolean> {
      const { stdout } = await runProgram('loginctl', ['show-user', String(user), '--property=Linger', '--value'])
      return stdout.trim() === 'yes'
    }
  }

  /** @returns never rejects */
  function runProgram (program: string,
    words: string[]): Promise<{ code: number | string | null, stdout: string, reason: string }>
  {
    return new Promise((resolve) => {
      execFile(program, words, { env: { ...withoutOwnVariables(env), LC_ALL: 'C', SYSTEMD_COLORS: '0' },
        maxBuffer: MAX_OUTPUT_BYTES, timeout: patienceMs, killSignal: 'SIGKILL' }, (error, stdout, stderr) => {
        if (!error) return resolve({ code: 0, stdout, reason: '' })
        const reason = error.code === 'ENOENT'
          ? `${program} was not found`
          : oneLine(stderr.trim()) || `exit code ${error.code ?? error.signal}`
        resolve({ code: error.code ?? null, stdout, reason })
      })
    })
  }
}

/** Tells whether the service of this process stops only to be started again, with sockets that it has stored */
export async function isRestarting (env: Record<string, string | undefined> = process.env): Promise<boolean> {
  // ENOENT: a system without control groups.
  const unit = env.NOTIFY_SOCKET === undefined ? null : attempt(() => serviceOf(process.pid))
  return unit !== null &&
    await createSystemctl({ scope: unit.isOfUser ? 'user' : 'system', env, patienceMs: ANSWER_WITHIN_MS }).isRestarting(
      unit.name
    )
}
