import { createWriteStream } from 'node:fs'
import path from 'node:path'
import { pipeline } from 'node:stream/promises'
import { setTimeout as wait } from 'node:timers/promises'
import { DeckError } from '../errors.js'
import { timedOut } from './api-client.js'
import { checkedDuration } from './duration.js'
import { checkedId } from './id.js'

/** @typedef {import('./commands.js').Context} Context */

const POLL_MS = 200

/** @param {Context} context @param {string} worker */
export async function kill ({ api, options, print }, worker) {
  const id = checkedId('kill', worker)
  const body = await api.post(`/workers/${id}/kill`)
  print(options.json ? JSON.stringify(body, null, 2) : `worker ${id} killed; its replacement starts`)
}

/** @param {Context} context @param {string} worker */
export async function diagnose ({ api, options, cwd, print, tell, timeoutMs }, worker) {
  const id = checkedId('diagnose', worker)
  const durationMs = options.duration === undefined ? undefined : checkedDuration('--duration', options.duration)
  let item = await api.post(`/workers/${id}/diagnostics`, { kind: options.kind, ...(durationMs === undefined ? {} : { durationMs }) })
  tell(`${item.kind} of worker ${id} (slot ${item.slot}) started`)
  if (item.warning) tell(`warning: ${item.warning}`)
  while (item.state === 'running') {
    await wait(POLL_MS)
    if (api.signal.aborted) throw timedOut(timeoutMs)
    item = await api.get(`/diagnostics/${item.id}`)
  }
  if (item.state === 'failed') throw new DeckError('diagnostics-failed', `diagnostics ${item.id} failed: ${item.error}`)
  const response = await api.download(`/diagnostics/${item.id}/file`)
  const file = path.resolve(cwd, options.output ?? nameIn(response))
  try {
    // It may hold secrets, and nothing that is there is overwritten.
    await pipeline(response, createWriteStream(file, { flags: 'wx', mode: 0o600 }))
  } catch (/** @type {any} */ error) {
    throw new DeckError('diagnostics-failed', `${file} cannot be written (${error.code ?? error.message}); the master keeps the file as diagnostics ${item.id}`, { cause: error })
  }
  print(options.json ? JSON.stringify({ ...item, file }, null, 2) : file)
}

/** @param {import('./api-client.js').Response} response @returns {string} without any folder, whatever it says */
function nameIn (response) {
  const [, name] = /filename="([\w.-]+)"/.exec(response.headers['content-disposition'] ?? '') ?? []
  return path.basename(name ?? 'diagnostics')
}
