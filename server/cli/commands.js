import { spawn } from 'node:child_process'
import { oneLine } from '../system/one-line.js'
import { withoutOwnVariables } from '../system/own-variables.js'
import { sendRequest } from '../system/http.js'
import { isAlive } from '../system/process-identity.js'
import { isInOtherNamespace } from '../system/recipient.js'
import { checkedCount } from './count.js'
import { checkedId } from './id.js'
import { namesIn } from './names.js'
import { jsonText, statusText } from './output.js'
import { waitUntil } from './wait-until.js'
import { watchStatus } from './watch.js'

/** @typedef {import('./find-master.js').Master} Master */

/**
 * The flags of all commands, as they were given.
 * @typedef {Partial<Record<Switch, true> & Record<TextOption, string>>} Options
 * @typedef {'json' | 'wait' | 'watch' | 'follow' | 'csv' | 'timestamps' | 'all' | 'yes' | 'purge' | 'noWait' | 'detach' | 'interactive' | 'host' | 'dryRun' | 'issue'} Switch
 * @typedef {'dataDir' | 'app' | 'name' | 'url' | 'token' | 'tokenFile' | 'timeout' | 'member' | 'note' | 'path' | 'git' | 'branch' | 'surge' | 'minReady' | 'canary' |
 *   'canaryTime' | 'onFailure' | 'push' | 'pushAlso' | 'batch' | 'pause' | 'deadline' | 'order' | 'only' | 'type' | 'limit' | 'worker' | 'kind' |
 *   'duration' | 'output' | 'node' | 'cause' | 'slot' | 'release' | 'rollout' | 'since' | 'until' | 'q' | 'stream' | 'lines' | 'around' | 'level' | 'state' |
 *   'as' | 'role' | 'ttl' | 'apps' | 'title' | 'events' | 'beforeSince' | 'beforeUntil' | 'beforeWorker' | 'beforeRelease' | 'urlFile' | 'secretFile' | 'server' | 'from' | 'user' | 'passwordFile' | 'sort' | 'compare'} TextOption
 */

/**
 * What the commands have to work with.
 * @typedef {Tools & { api: import('./api-client.js').ApiClient, master: Master, options: Options, findAgain: () => Promise<Master>, cwd: string, timeoutMs: number }} Context
 *   `options`: the command's own; `findAgain`: finds the master that has followed; `cwd`: the folder that paths are relative to
 *
 * What they say it with.
 * @typedef {object} Tools
 * @property {(text: string) => void} print writes a result to stdout
 * @property {(value: unknown, textOf: () => string) => void} answer writes a result to stdout, as JSON where that is asked for
 * @property {((value: unknown) => void) | null} keep takes a result that is shown beside those of other apps; null: this is the only one
 * @property {(question: string) => Promise<boolean | null>} confirm asks whoever sits at the terminal; null: nobody does
 * @property {(text: string) => Promise<void>} write writes a part of a result, no faster than stdout takes it
 * @property {(text: string) => void} writeError writes a part of what a program has written to its stderr
 * @property {(text: string) => void} tell writes progress to stderr
 * @property {NodeJS.WriteStream} stdout
 * @property {boolean} isTerminal stdout is one
 * @property {boolean} canDraw the terminal has a cursor that can be moved
 * @property {boolean} isInteractive somebody sits at the terminal
 */

/** What opens an address, by platform. @type {Partial<Record<NodeJS.Platform, string[]>>} */
const OPENERS = { darwin: ['open'], win32: ['cmd', '/c', 'start', ''] }

/** @param {Context} context */
export async function statusCommand (context) {
  const { api, options, answer } = context
  if (options.watch) return await watchStatus(context)
  const body = await api.get('/status')
  answer(body, () => statusText(body, Date.now()))
}

/** @param {Context} context @param {string} notice */
export async function acknowledgeCommand ({ api, options, print }, notice) {
  const body = await api.post(`/notices/${checkedId('acknowledge', notice, 'a notice')}/acknowledge`)
  print(options.json ? jsonText(body) : `notice ${body.id} acknowledged: ${oneLine(body.message)}`)
}

/** @param {Context} context @param {string} count */
export async function scaleCommand ({ api, options, answer, tell, timeoutMs }, count) {
  const workers = checkedCount('scale', count, { max: 256 })
  const { desiredWorkers } = await api.put('/scale', { workers })
  if (options.wait) {
    let told = ''
    await waitUntil(async () => {
      /** @type {import('../api/cluster.js').Status} */
      const { readyWorkers, finishedWorkers = 0, workers: rows } = await api.get('/status')
      const progress = `${Number(readyWorkers)} of ${workers} workers ready, ${rows.filter(({ pid, keptUntil }) => pid !== null && !keptUntil).length} alive`
      if (progress !== told) tell(progress)
      told = progress
      return readyWorkers + finishedWorkers === workers && rows.filter(({ keptUntil }) => !keptUntil).length === workers
    }, api.signal, timeoutMs)
  }
  const counted = desiredWorkers === 1 ? '1 worker' : `${desiredWorkers} workers`
  const outcome = options.wait ? `${desiredWorkers === 1 ? 'is' : 'are'} ready` : 'wanted'
  answer({ desiredWorkers }, () => oneLine(`${counted} ${outcome}`))
}

/** @param {Context} context */
export async function openCommand ({ api, options, print, isInteractive }) {
  const link = await api.post('/sign-in-links', { name: options.as, role: options.role, ...(options.apps !== undefined && { apps: namesIn(options.apps) }) })
  print(options.json ? jsonText(link) : link.url)
  if (isInteractive && !options.json) openBrowser(link.url)
}

/** @param {Context} context */
export async function stopCommand ({ api, master, answer, tell, timeoutMs }) {
  const body = await api.post('/stop')
  tell('stopping: the workers finish their requests')
  await waitUntil(() => isGone(master, api.signal), api.signal, timeoutMs)
  answer({ ...body, state: 'stopped' }, () => 'stopped')
}

/** @param {Master} master @param {AbortSignal} signal */
async function isGone ({ recipient, url, fingerprint }, signal) {
  if (recipient && !isInOtherNamespace(recipient)) return !isAlive(recipient.processes[0])
  try {
    const response = await sendRequest(`${url}/healthz`, { signal, fingerprint, recipient: null, headers: {} })
    response.resume()
    return false
  } catch {
    return !signal.aborted
  }
}

/** @param {string} url */
function openBrowser (url) {
  const [command, ...args] = OPENERS[process.platform] ?? ['xdg-open']
  // Where there is no browser, the printed link is enough.
  spawn(command, [...args, url], { stdio: 'ignore', detached: true, env: withoutOwnVariables(process.env) }).on('error', () => {}).unref()
}
