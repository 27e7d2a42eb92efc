import { spawn } from 'node:child_process'
import path from 'node:path'
import { DeckError, errorText } from '../errors.ts'
import { sendRequest } from '../system/http.ts'
import { oneLine } from '../system/one-line.ts'
import { withoutOwnVariables } from '../system/own-variables.ts'
import { isAlive } from '../system/process-identity.ts'
import { isInOtherNamespace } from '../system/recipient.ts'
import { idOf, orderFor } from './actions.ts'
import { nullOn, waitUntil } from './api-client.ts'
import { statusText } from './output.ts'
import { checkedCount, checkedId, namesIn, misuse } from './usage.ts'
import { watchStatus } from './watch.ts'
import type { Master } from './find-master.ts'
import type { ApiClient } from './api-client.ts'
import type { Status } from '../api/cluster.ts'
import type { Host } from '../host/api.ts'
import type { Notice } from '../events/api-notices.ts'

/** The flags of all commands, as they were given. */
export type Options = Partial<Record<Switch, true> & Record<TextOption, string>>
type Switch = 'json' | 'wait' | 'watch' | 'follow' | 'csv' | 'timestamps' | 'all' | 'yes' | 'purge' | 'noWait'
  | 'detach' | 'interactive' | 'host' | 'allHosts' | 'dryRun' | 'updateEnv' | 'waitForTurn' | 'apply'
export type TextOption = DeckOption | RolloutOption | FilterOption | OtherOption
type DeckOption = 'dataDir' | 'app' | 'name' | 'url' | 'token' | 'tokenFile' | 'timeout' | 'member'
type RolloutOption = 'note' | 'path' | 'git' | 'surge' | 'minReady' | 'canary' | 'canaryTime' | 'onFailure' | 'push'
  | 'pushAlso' | 'batch' | 'pause' | 'deadline' | 'order' | 'only'
type FilterOption = 'type' | 'limit' | 'worker' | 'cause' | 'slot' | 'release' | 'rollout' | 'since' | 'until' | 'q'
  | 'stream' | 'lines' | 'around' | 'level' | 'state' | 'sort' | 'compare'
type OtherOption = 'branch' | 'kind' | 'duration' | 'output' | 'node' | 'as' | 'role' | 'ttl' | 'apps' | 'title'
  | 'events' | 'beforeRelease' | 'urlFile' | 'secretFile' | 'bodyFile' | 'headersFile' | 'server' | 'from' | 'user'
  | 'passwordFile' | 'domain'

/**
 * What the commands have to work with. `options`: the command's own; `anew`: a client that has the whole time of a
 * command from now on; `findAgain`: finds the master that has followed; `cwd`: the folder that paths are relative to
 */
export type Context = Tools & { api: ApiClient, anew: () => ApiClient, master: Master, options: Options,
  findAgain: () => Promise<Master>, cwd: string, env: Record<string, string | undefined>, timeoutMs: number }
/** What they say it with. */
export type Tools = {
  /** writes a result to stdout */
  print: (text: string) => void,
  /** writes a result to stdout, as JSON where that is asked for */
  answer: (value: unknown, textOf: () => string) => void,
  /** takes a result that is shown beside those of other apps; null: this is the only one */
  keep: ((value: unknown) => void) | null,
  /** asks whoever sits at the terminal; null: nobody does */
  confirm: (question: string) => Promise<boolean | null>,
  /** writes a part of a result, no faster than stdout takes it */
  write: (text: string) => Promise<void>,
  /** writes a part of what a program has written to its stderr */
  writeError: (text: string) => void,
  /** writes progress to stderr */
  tell: (text: string) => void,
  stdout: NodeJS.WriteStream,
  /** stdout is one */
  isTerminal: boolean,
  /** the terminal has a cursor that can be moved */
  canDraw: boolean,
  /** somebody sits at the terminal */
  isInteractive: boolean
}

/** What opens an address, by platform. */
const OPENERS: Partial<Record<NodeJS.Platform, string[]>> = { darwin: ['open'], win32: ['cmd', '/c', 'start', ''] }

export async function statusCommand (context: Context) {
  const { api, options, answer } = context
  if (options.watch) return await watchStatus(context)
  const body = await api.get<Status>('/status')
  answer(body, () => statusText(body, Date.now()))
}

export const acknowledgeCommand = orderFor(idOf('acknowledge', 'a notice'), 'POST /notices/:id/acknowledge',
  ({ id, message }: Notice) => `notice ${id} acknowledged: ${oneLine(message)}`)

export async function scaleCommand ({ api, options, answer, tell }: Context, count: string) {
  const workers = checkedCount('scale', count, { max: 256 })
  const { desiredWorkers } = await api.put<{ desiredWorkers: number }>('/scale', { workers })
  if (options.wait) {
    let told = ''
    await waitUntil(async () => {
      const { readyWorkers, finishedWorkers = 0, workers: rows }: Status = await api.get('/status')
      const progress = `${Number(readyWorkers)} of ${workers} workers ready, ${
        rows.filter(({ pid, keptUntil }) => pid !== null && !keptUntil).length
      } alive`
      if (progress !== told) tell(progress)
      told = progress
      return readyWorkers + finishedWorkers === workers && rows.filter(({ keptUntil }) => !keptUntil).length === workers
    }, api)
  }
  const counted = desiredWorkers === 1 ? '1 worker' : `${desiredWorkers} workers`
  const outcome = options.wait ? `${desiredWorkers === 1 ? 'is' : 'are'} ready` : 'wanted'
  answer({ desiredWorkers }, () => oneLine(`${counted} ${outcome}`))
}

export async function openCommand ({ api, options, answer, isInteractive }: Context) {
  const link = await api.post<{ url: string }>('/sign-in-links', { name: options.as, role: options.role,
    apps: namesIn(options.apps) })
  answer(link, () => link.url)
  if (isInteractive && !options.json) openBrowser(link.url)
}

export async function stopCommand ({ api, master, answer, tell }: Context) {
  const body = await api.post<object>('/stop')
  tell('stopping: the workers finish their requests')
  await waitUntil(() => isGone(master, api.signal), api)
  answer({ ...body, state: 'stopped' }, () => 'stopped')
}

async function isGone ({ recipient, url, fingerprint }: Master, signal: AbortSignal) {
  if (recipient && !isInOtherNamespace(recipient)) return !isAlive(recipient.processes[0])
  try {
    const response = await sendRequest(`${url}/healthz`, { signal, fingerprint, recipient: null, headers: {} })
    response.resume()
    return false
  } catch {
    return !signal.aborted
  }
}

function openBrowser (url: string) {
  const [command, ...args] = OPENERS[process.platform] ?? ['xdg-open']
  // Where there is no browser, the printed link is enough.
  spawn(command, [...args, url], { stdio: 'ignore', detached: true, env: withoutOwnVariables(process.env) }).on('error',
    () => {}).unref()
}

const SHOWN_CHARS = 30

export async function sendCommand ({ api, options, answer }: Context, type: string, text?: string) {
  const sent = await api.post<{ workers: number[] }>('/messages', { type,
    ...(text !== undefined && { data: parsedData(text) }),
    ...(options.worker !== undefined && { worker: checkedId('--worker', options.worker) }) })
  if (sent.workers.length === 0) throw new DeckError('not-possible', 'send: no worker is ready')
  const ids = sent.workers.map(Number).join(', ')
  answer(sent, () => `sent to ${sent.workers.length === 1 ? 'worker' : 'workers'} ${ids}`)
}

function parsedData (text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw misuse('send', 'JSON', whereWrong(text, errorText(error)), { cause: error })
  }
}

/** `reason`: from V8; where it has no position, it quotes the place */
function whereWrong (text: string, reason: string) {
  const at = Number(/ at position (\d+)/.exec(reason)?.[1] ?? text.length)
  if (at < text.length) return `${JSON.stringify(text.slice(at, at + SHOWN_CHARS))} at position ${at}: ${reason}`
  return `${JSON.stringify(text.slice(0, SHOWN_CHARS))}${text.length > SHOWN_CHARS ? '…' : ''}: ${reason}`
}

/** Upgrades the host that is meant, with all of its apps. */
export async function upgradeCommand ({ api, options, answer, tell }: Context) {
  const look = () => api.get<Host>('')
  const before = await look()
  const started = await api.post('/upgrade', {
    execPath: options.node === undefined ? undefined : path.resolve(options.node),
    note: options.note
  })
  if (!options.wait) return answer(started, () => 'upgrade started')
  tell('upgrade started: the next master starts its workers')
  let now = before
  await waitUntil(async () => {
    // Between two masters a connection may end without an answer.
    const seen = await look().catch(nullOn('no-master'))
    if (seen === null || seen.upgrade !== null) return false
    now = seen
    // The old master may answer for a moment after it has handed over.
    return now.pid !== before.pid || now.upgradeFailure?.at !== before.upgradeFailure?.at
  }, api)
  const { upgrade: _, upgradeFailure, ...master } = now
  if (now.pid === before.pid)
    throw new DeckError('upgrade-failed', `the upgrade failed: ${upgradeFailure?.message}`)
  answer(master, () => `upgraded to clusterdeck ${now.version} on Node ${now.nodeVersion} (pid ${now.pid})`)
}
