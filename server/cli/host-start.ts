import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { DeckError, errorReason } from '../errors.ts'
import { formatExactDuration } from '../../public/format.ts'
import { hostFolder } from '../system/host-folder.ts'
import { makeFolders } from '../system/make-folders.ts'
import { oneLine } from '../system/one-line.ts'
import { withoutOwnVariables } from '../system/own-variables.ts'
import { nullOn, type ApiClient, type Deadline } from './api-client.ts'
import { callHost, findHost } from './host.ts'
import { checkAnswers } from './reachable.ts'
import { flagOf } from './start.ts'
import type { Master } from './find-master.ts'
import type { Terminal } from './program.ts'

type Env = Record<string, string | undefined>
/** `ofHost`: words of its command line, for a new one; `killed`: ends a new one while it starts */
type How = Deadline & { ofHost?: readonly string[], terminal: Terminal, killed?: AbortSignal }

const POLL_MS = 50
/** How many of its last lines are shown where a host does not start. */
const SHOWN_LINES = 20
/**
 * Of the variables that belong to an app, these would change what the host itself does, or are of the shell's own npm.
 */
const OF_APP = /^(NODE_OPTIONS|NODE_ENV|PORT|INIT_CWD|npm_.*)$/
/** Of our own variables, those that the host reads: where things are, and the options that it has once for all apps. */
const OF_HOST = /^CLUSTERDECK_(HOST_DIR|RUNTIME_DIR|(ADMIN|FLEET|KEEPER)(_.*)?)$/

/**
 * Splits the flags of a start into those of the app and those of the host, as words of its command line. `flags`: by
 * the key of the option; `keeper`: false for --no-keeper.
 */
export async function splitFlags ({ keeper, ...flags }: Record<string, unknown>,
  cwd: string): Promise<{ flags: Record<string, unknown>, ofHost: string[] }>
{
  const [{ isOfHost }, { OPTIONS }] = await Promise.all([import('../config/config.ts'),
    import('../config/option-list.ts')])
  const ofHost = OPTIONS.filter(({ name, key }) => isOfHost(name) && flags[key] !== undefined)
  const keys = new Set(ofHost.map(({ key }) => key))
  return {
    flags: Object.fromEntries(Object.entries(flags).filter(([key, value]) => value !== undefined && !keys.has(key))),
    ofHost: [...ofHost.flatMap((option) => flagOf(option, String(flags[option.key]), cwd)),
      ...(keeper === false ? ['--no-keeper'] : [])]
  }
}

/**
 * Finds the host of this user, or starts it: in a session of its own, so that neither Ctrl-C nor the end of the
 * terminal reaches it. Returns `child`: the host, or null where it ran before.
 * @throws {DeckError} usage: it runs already, and `ofHost` says how it should; start-failed, timed-out
 */
export async function ensureHost (how: How): Promise<{ master: Master, child: ChildProcess | null }> {
  const { ofHost = [], terminal: { env, stderr } } = how
  const running = findHost(env)
  if (running !== null) {
    if (ofHost.length > 0)
      throw new DeckError('usage',
        `${ofHost[0]}: expected only where this starts the host, which runs already: its page is at ${running.url}`)
    return { master: running, child: null }
  }
  const started = await startHost(how)
  if (started.child) stderr.write(`clusterdeck: the host is started: ${started.master.url}\n`)
  return started
}

/** Finds or starts the host of this user. Returns `url`: of its page. */
export async function meetHost (deadline: Deadline, terminal: Terminal): Promise<{ host: ApiClient, url: string }> {
  const { master } = await ensureHost({ ...deadline, terminal })
  return { host: callHost(master, { env: terminal.env, ...deadline }), url: master.url }
}

async function startHost (
  { ofHost = [], signal, timeoutMs, terminal: { env, script }, killed }: How
): ReturnType<typeof ensureHost> {
  const folder = hostFolder(env)
  const output = openOutput(folder)
  const child = spawn(process.execPath, [...process.execArgv, script, 'host', ...ofHost], { cwd: folder,
    env: { ...environmentOf(env), PWD: folder }, detached: true,
    stdio: ['ignore', output.descriptor, output.descriptor] })
  closeSync(output.descriptor)
  let end: string | null = null
  let isThere = false
  once(child, 'exit').then(([code, killedBy]) => {
    end = killedBy === null ? `exit code ${code}` : `killed by ${killedBy}`
  }, (error) => {
    end = errorReason(error)
  })
  child.unref()
  killed?.addEventListener('abort', () => {
    if (!isThere) killHost(child)
  })
  for (;;) {
    const master = await answeringHost(env)
    isThere = master !== null
    if (master !== null) return { master, child: end === null ? child : null }
    // Another command has started one at the same time: that one is to come.
    const isLate = output.lastLines().includes('already runs on this data folder')
    if (end !== null && !isLate)
      throw new DeckError('start-failed', `the host has ended before its page was there (${end})${output.lastLines()}`)
    if (signal.aborted)
      throw new DeckError('timed-out',
        `the page of the host was not there within ${
          formatExactDuration(timeoutMs)
        } (--timeout); it goes on${output.lastLines()}`)
    await wait(POLL_MS)
  }
}

/** Ends a host at once, as two signals of an operator do. */
export function killHost (child: ChildProcess) {
  child.kill('SIGTERM')
  child.kill('SIGINT')
}

/** Null: not yet */
async function answeringHost (env: Env): Promise<Master | null> {
  const look = async () => {
    const host = findHost(env)
    if (host !== null) await checkAnswers(host, { env })
    return host
  }
  // It is about to write its token, or to open its port.
  return await look().catch(nullOn('unauthenticated', 'timed-out', 'no-master'))
}

/**
 * `folder`: of the host
 * @throws {DeckError} data-dir-unusable
 */
function openOutput (folder: string) {
  const file = path.join(folder, 'logs', 'host.log')
  try {
    makeFolders(path.dirname(file), 0o700)
    const descriptor = openSync(file, 'a', 0o600)
    const { size } = fstatSync(descriptor)
    return { descriptor, lastLines () {
      const lines = readFileSync(file).subarray(size).toString().split('\n').map((line) => oneLine(line)).filter(
        Boolean
      ).slice(-SHOWN_LINES)
      return lines.length === 0 ? '' : `: ${lines.join(' | ')}`
    } }
  } catch (error) {
    throw new DeckError('data-dir-unusable',
      `${folder}: expected a folder for the host, received ${errorReason(error)}`, { cause: error })
  }
}

/** `env`: of the shell @returns without what is meant for the app */
function environmentOf (env: Env): Env {
  const ours = Object.entries(env).filter(([name]) => OF_HOST.test(name))
  return { ...Object.fromEntries(Object.entries(withoutOwnVariables(env)).filter(([name]) => !OF_APP.test(name))),
    ...Object.fromEntries(ours) }
}
