import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { DeckError } from '../errors.ts'
import { heldWords } from '../held-words.ts'
import { orderFor } from './actions.ts'
import { timedOut } from './api-client.ts'
import { saveDownload } from './download.ts'
import { checkedId, optionalDuration } from './usage.ts'
import type { IncomingMessage } from 'node:http'
import type { Context } from './commands.ts'
import type { Worker } from '../api/cluster.ts'
import type { Diagnostics } from '../api/diagnostics.ts'

const POLL_MS = 200

export const killCommand = orderFor((id) => checkedId('kill', id), (api, id) => api.post(`/workers/${id}/kill`),
  (_, id) => `worker ${id} killed; its replacement starts`)

export const endConnectionsCommand = orderFor((id) => checkedId('end-connections', id),
  (api, id) => api.post<Worker>(`/workers/${id}/end-connections`),
  ({ holds }, id) => `worker ${id} closes ${heldWords(holds)}, and ends then`)

export async function diagnoseCommand ({ api, options, cwd, answer, tell, timeoutMs }: Context, worker: string) {
  const id = checkedId('diagnose', worker)
  const durationMs = optionalDuration('--duration', options.duration)
  let item: Diagnostics = await api.post(`/workers/${id}/diagnostics`, { kind: options.kind, durationMs })
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
  answer({ ...item, file }, () => file)
}

/** @returns never with a folder, whatever the header says */
function nameIn (response: IncomingMessage): string {
  const [, name] = /filename="([\w.-]+)"/.exec(response.headers['content-disposition'] ?? '') ?? []
  return path.basename(name ?? 'diagnostics')
}
