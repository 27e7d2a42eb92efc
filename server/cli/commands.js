import { spawn } from 'node:child_process'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { DeckError } from '../errors.js'
import { oneLine } from '../system/one-line.js'
import { withoutOwnVariables } from '../system/own-variables.js'
import { timedOut } from './api-client.js'
import { sendRequest } from '../system/http.js'
import { isAlive } from '../system/process-identity.js'
import { isInOtherNamespace } from '../system/recipient.js'
import { checkedId } from './id.js'
import { statusText } from './output.js'
import { watch } from './watch.js'

/**
 * What the commands have to work with.
 * @typedef {object} Context
 * @property {import('./api-client.js').ApiClient} api
 * @property {import('./find-master.js').Master} master
 * @property {Record<string, any>} options the command's own
 * @property {() => Promise<import('./find-master.js').Master>} findAgain the one that has come after it, perhaps
 * @property {string} cwd the folder that paths are relative to
 * @property {number} timeoutMs
 * @property {(text: string) => void} print a result, to stdout
 * @property {(text: string) => Promise<void>} write a part of one, no faster than stdout takes it
 * @property {(text: string) => void} tell progress, to stderr
 * @property {NodeJS.WriteStream} stdout for what is more than text
 * @property {boolean} isTerminal stdout is one
 * @property {boolean} canDraw and has a cursor that can be moved
 * @property {boolean} isInteractive somebody sits at the terminal
 */

const POLL_MS = 100

/** @param {Context} context */
export async function status (context) {
  const { api, options, print } = context
  if (options.watch) return await watch(context)
  const body = await api.get('/status')
  print(options.json ? json(body) : statusText(body, Date.now()))
}

/** @param {Context} context @param {string} notice */
export async function acknowledge ({ api, options, print }, notice) {
  const body = await api.post(`/notices/${checkedId('acknowledge', notice, 'a notice')}/acknowledge`)
  print(options.json ? json(body) : `notice ${body.id} acknowledged: ${oneLine(body.message)}`)
}

/** @param {Context} context */
export async function upgrade ({ api, options, print, tell, timeoutMs }) {
  const { master: before, lastEventId } = await api.get('/status')
  const started = await api.post('/upgrade', {
    ...(options.node === undefined ? {} : { execPath: path.resolve(options.node) }),
    ...(options.note === undefined ? {} : { note: options.note })
  })
  if (!options.wait) {
    print(options.json ? json(started) : 'upgrade started')
    return
  }
  tell('upgrade started: the next master starts its workers')
  /** @type {any} */
  let [master, failure] = [before, undefined]
  await until(async () => {
    const now = await api.get('/status').catch(passOver)
    if (!now || now.upgrade !== null) return false
    master = now.master
    if (master.pid !== before.pid) return true
    // One that has handed over may answer for a moment longer.
    failure = (await api.get('/events?type=master.upgrade-failed&limit=1').catch(passOver))?.items[0]
    return failure?.id > lastEventId
  }, api.signal, timeoutMs)
  if (failure?.id > lastEventId) throw new DeckError('upgrade-failed', `the upgrade failed: ${failure.message}`)
  print(options.json ? json(master) : `upgraded to clusterdeck ${master.version} on Node ${master.nodeVersion} (pid ${master.pid})`)
}

/** Between two masters a connection may end without an answer. @param {unknown} error */
function passOver (error) {
  if (error instanceof DeckError && error.code === 'no-master') return null
  throw error
}

/** @param {Context} context @param {string} count */
export async function scale ({ api, options, print, tell, timeoutMs }, count) {
  const workers = checkedCount(count)
  const { desiredWorkers } = await api.put('/scale', { workers })
  if (options.wait) {
    let told = ''
    await until(async () => {
      const { readyWorkers, finishedWorkers = 0, workers: rows } = await api.get('/status')
      const progress = `${Number(readyWorkers)} of ${workers} workers ready, ${rows.filter((/** @type {any} */ { pid }) => pid !== null).length} alive`
      if (progress !== told) tell(progress)
      told = progress
      return readyWorkers + finishedWorkers === workers && rows.length === workers
    }, api.signal, timeoutMs)
  }
  const counted = desiredWorkers === 1 ? '1 worker' : `${desiredWorkers} workers`
  const outcome = options.wait ? `${desiredWorkers === 1 ? 'is' : 'are'} ready` : 'wanted'
  print(options.json ? json({ desiredWorkers }) : oneLine(`${counted} ${outcome}`))
}

/** @param {Context} context */
export async function open ({ api, options, print, isInteractive }) {
  const link = await api.post('/sign-in-links', { ...(options.as !== undefined && { name: options.as }), ...(options.role !== undefined && { role: options.role }) })
  print(options.json ? json(link) : link.url)
  if (isInteractive && !options.json) openBrowser(link.url)
}

/** @param {Context} context */
export async function stop ({ api, master, options, print, tell, timeoutMs }) {
  const body = await api.post('/stop')
  tell('stopping: the workers finish their requests')
  await until(() => isGone(master, api.signal), api.signal, timeoutMs)
  print(options.json ? json({ ...body, state: 'stopped' }) : 'stopped')
}

/**
 * @param {import('./find-master.js').Master} master @param {AbortSignal} signal
 */
async function isGone ({ recipient, url, fingerprint }, signal) {
  if (recipient && !isInOtherNamespace(recipient)) return !isAlive(recipient.processes[0])
  return sendRequest(`${url}/healthz`, { signal, fingerprint, recipient: null, headers: {} }).then((response) => !response.resume(), () => !signal.aborted)
}

/** @param {() => boolean | Promise<boolean>} isDone @param {AbortSignal} signal @param {number} timeoutMs */
async function until (isDone, signal, timeoutMs) {
  while (!await isDone()) {
    if (signal.aborted) throw timedOut(timeoutMs)
    await wait(POLL_MS)
  }
}

/** @param {string} url */
function openBrowser (url) {
  const [command, ...args] = { darwin: ['open'], win32: ['cmd', '/c', 'start', ''] }[/** @type {string} */ (process.platform)] ?? ['xdg-open']
  // Without a browser the link that was printed is enough.
  spawn(command, [...args, url], { stdio: 'ignore', detached: true, env: withoutOwnVariables(process.env) }).on('error', () => {}).unref()
}

/** @param {string} count */
function checkedCount (count) {
  const workers = /^\d{1,3}$/.test(count) ? Number(count) : NaN
  if (workers >= 1 && workers <= 256) return workers
  throw new DeckError('usage', `scale: expected an integer from 1 to 256, received ${JSON.stringify(count)}`)
}

/** @param {unknown} value */
function json (value) {
  return JSON.stringify(value, null, 2)
}
