import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { DeckError } from '../errors.js'
import { heldWords } from '../held-words.js'
import { timedOut } from './api-client.js'
import { optionalDuration } from './duration.js'
import { saveDownload } from './download.js'
import { checkedId } from './id.js'
import { jsonText } from './output.js'

/** @typedef {import('./commands.js').Context} Context */

const POLL_MS = 200

/** @param {Context} context @param {string} worker */
export async function killCommand ({ api, options, print }, worker) {
  const id = checkedId('kill', worker)
  const body = await api.post(`/workers/${id}/kill`)
  print(options.json ? jsonText(body) : `worker ${id} killed; its replacement starts`)
}

/** @param {Context} context @param {string} worker */
export async function endConnectionsCommand ({ api, options, print }, worker) {
  const id = checkedId('end-connections', worker)
  /** @type {import('../api/cluster.js').Worker} */
  const body = await api.post(`/workers/${id}/end-connections`)
  print(options.json ? jsonText(body) : `worker ${id} closes ${heldWords(body.holds)}, and ends then`)
}

/** @param {Context} context @param {string} worker */
export async function diagnoseCommand ({ api, options, cwd, print, tell, timeoutMs }, worker) {
  const id = checkedId('diagnose', worker)
  const durationMs = optionalDuration('--duration', options.duration)
  /** @type {import('../api/diagnostics.js').Diagnostics} */
  let item = await api.post(`/workers/${id}/diagnostics`, { kind: options.kind, durationMs })
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
  await saveDownload(response, file, `; the master keeps it as diagnostics ${item.id}`)
  print(options.json ? jsonText({ ...item, file }) : file)
}

/** @param {import('./api-client.js').Response} response @returns {string} never with a folder, whatever the header says */
function nameIn (response) {
  const [, name] = /filename="([\w.-]+)"/.exec(response.headers['content-disposition'] ?? '') ?? []
  return path.basename(name ?? 'diagnostics')
}
