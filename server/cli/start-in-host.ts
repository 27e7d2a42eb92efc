import { runForApps, type AppCommand } from './app-command.ts'
import { orderOfStart } from './app-orders.ts'
import { fillHost } from './fill-host.ts'
import { findHost } from './host.ts'
import { refuseOutside, startApp } from './host-apps.ts'
import { ensureHost, splitFlags } from './host-start.ts'
import { recordedApps, unknownApp } from './known-apps.ts'
import { misuse, timeoutOf } from './usage.ts'
import type { Terminal } from './program.ts'
import type { Options } from './commands.ts'

type HostOptions = Pick<Options, 'all' | 'json' | 'noWait' | 'timeout' | 'apply'>

const START: AppCommand = { name: 'start', run: refuseOutside, onHost: startApp, isMeant: () => true, needsName: true }

/**
 * Does what `start` does with the host of this user: runs an entry there, or starts apps of it again. `how`: `flags`:
 * of the app and the host. Returns the exit code.
 * @throws {DeckError} usage, start-failed
 */
export async function startInHost (words: string[],
  { flags, given, isOfApps }: { flags: Record<string, unknown>, given: HostOptions & { detach?: true },
    isOfApps: boolean }, terminal: Terminal): Promise<number>
{
  const { detach, ...options } = given
  if (isOfApps) {
    await bringBackHost(words, options, terminal)
    return await runForApps(START, { words, options, terminal })
  }
  const [entry, second] = words
  if (second !== undefined)
    throw misuse('too many arguments for "start"', 'one entry',
      `${JSON.stringify(second)} too. Arguments for the app go after --.`)
  if (!detach)
    throw misuse(`--${Object.keys(options)[0].replace('noWait', 'no-wait')}`,
      'with --detach or the name of an app of the host', 'neither')
  if (options.all) throw misuse('--all', 'without --detach', 'both')
  const { flags: ofApp, ofHost } = await splitFlags(flags, terminal.cwd)
  const order = orderOfStart({ ...ofApp, ...(entry !== undefined && { entry }) }, terminal)
  await fillHost([{ label: null, order }], { command: 'start', waits: !options.noWait, applies: options.apply,
    json: options.json, timeout: options.timeout, ofHost }, terminal)
  return 0
}

/**
 * Starts a host that does not run and remembers apps, with all that are not stopped.
 * @throws {DeckError} usage: one of the words is none of them, and nothing was started
 */
async function bringBackHost (words: string[], { timeout }: HostOptions, terminal: Terminal) {
  const remembered = findHost(terminal.env) === null ? recordedApps(terminal.env) : []
  if (remembered.length === 0) return
  const unknown = words.find((name) => !remembered.some((app) => app.name === name))
  if (unknown !== undefined) throw unknownApp(START.name, unknown, { known: remembered, takesAll: true })
  await ensureHost({ ...timeoutOf({ timeout }, terminal.env), terminal })
}

/**
 * Starts the host in the background, with the apps that it remembers, and prints where its page is.
 * @param flags of the host
 * @throws {DeckError} usage: it runs already, and the flags say how it should; start-failed, timed-out
 */
export async function detachHost (flags: Record<string, unknown>, terminal: Terminal) {
  const { ofHost } = await splitFlags(flags, terminal.cwd)
  const { master, child } = await ensureHost({ ofHost, ...timeoutOf({}, terminal.env), terminal })
  if (child === null) terminal.stderr.write('clusterdeck: the host runs already\n')
  terminal.stdout.write(`${master.url}\n`)
}
