import { createWriteStream } from 'node:fs'
import path from 'node:path'
import { pipeline } from 'node:stream/promises'
import { formatExactDuration, formatPercent } from '../../public/format.ts'
import { DeckError, errorReason } from '../errors.ts'
import { heldWords } from '../words/held.ts'
import { idOf, orderFor, tableText } from '../cli/actions.ts'
import { waitUntil } from '../cli/api-client.ts'
import { checkedId, optionalDuration, queryOf } from '../cli/usage.ts'
import type { IncomingMessage } from 'node:http'
import type { Context, TextOption } from '../cli/commands.ts'
import type { Columns } from '../cli/output.ts'
import type { Worker } from '../api/cluster.ts'
import type { Diagnostics } from './api.ts'
import type { ProfileChanges, ProfileFunctions } from './api-profiles.ts'

/** What is done with one worker, and what workers are busy with. */

export const killCommand = orderFor(idOf('kill'), 'POST /workers/:id/kill',
  (_, id) => `worker ${id} killed; its replacement starts`)

export const endConnectionsCommand = orderFor(idOf('end-connections'), 'POST /workers/:id/end-connections',
  ({ holds }: Worker, id) => `worker ${id} closes ${heldWords(holds)}, and ends then`)

export async function diagnoseCommand ({ api, options, cwd, answer, tell }: Context, worker: string) {
  const id = checkedId('diagnose', worker)
  const durationMs = optionalDuration('--duration', options.duration)
  let item: Diagnostics = await api.post(`/workers/${id}/diagnostics`, { kind: options.kind, durationMs })
  tell(`${item.kind} of worker ${id} (slot ${item.slot}) started`)
  if (item.warning) tell(`warning: ${item.warning}`)
  await waitUntil(async () => {
    if (item.state === 'running') item = await api.get(`/diagnostics/${item.id}`)
    return item.state !== 'running'
  }, api)
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

/**
 * Writes what a master sends into a new file. `otherwise`: where it can be found if it cannot be written.
 * @throws {DeckError} diagnostics-failed
 */
async function saveDownload (response: IncomingMessage, file: string, otherwise: string = '') {
  try {
    // The file may hold secrets, so only its owner may read it. An existing file is not overwritten.
    await pipeline(response, createWriteStream(file, { flags: 'wx', mode: 0o600 }))
  } catch (error) {
    throw new DeckError('diagnostics-failed', `${file} cannot be written (${errorReason(error)})${otherwise}`, {
      cause: error
    })
  }
}

const WINDOW: readonly TextOption[] = ['since', 'until', 'worker', 'release']

type ProfileFunction = ProfileFunctions['functions'][number]

const CHANGES: Columns<ProfileChanges['functions'][number]> = {
  BEFORE: [true, ({ beforePercent }) => formatPercent(beforePercent)],
  AFTER: [true, ({ afterPercent }) => formatPercent(afterPercent)],
  FUNCTION: 'function',
  WHERE: 'place'
}
const changedText = tableText(CHANGES, 'no function has changed by more than 0.1% of the time of a worker')

export async function profileCommand ({ api, options, cwd, answer, tell }: Context) {
  if (options.output !== undefined) {
    const file = path.resolve(cwd, options.output)
    await saveDownload(await api.download(`/profiles/file?${queryOf(options, WINDOW)}`), file)
    tell(`written: ${file}`)
  }
  if (options.beforeRelease !== undefined) {
    const query = queryOf(options, [...WINDOW, 'beforeRelease'])
    const changes = await api.get<ProfileChanges>(`/profiles/changes?${query}`)
    return answer(changes, () => changesText(changes))
  }
  const found = await api.get<ProfileFunctions>(`/profiles/functions?${queryOf(options, WINDOW)}`)
  answer(found, () => functionsText(found))
}

function functionsText ({ isOn, slices, since, until, busyMs, idleMs, functions }: ProfileFunctions) {
  if (slices === 0)
    return isOn
      ? 'no profile of that time is kept'
      : 'continuous profiling is off: clusterdeck config set diagnostics.profiling=on'
  const shareOf = (ms: number) => formatPercent(busyMs > 0 ? 100 * ms / busyMs : 0)
  return [
    `${slices} ${slices === 1 ? 'profile' : 'profiles'} of 5 s, from ${since} to ${until}: busy for ${
      formatExactDuration(busyMs)
    }, idle for ${formatExactDuration(idleMs)}`,
    '',
    tableText<ProfileFunction>({ SELF: [true, ({ selfMs }) => shareOf(selfMs)],
      TOTAL: [true, ({ totalMs }) => shareOf(totalMs)], FUNCTION: 'function', WHERE: placeOf })({ items: functions })
  ].join('\n')
}

function placeOf ({ place, line }: ProfileFunction): string {
  return line === null ? place : place.replace(/:\d+$/, `:${line}`)
}

function changesText ({ before, after, functions }: ProfileChanges) {
  for (const [name, { slices }] of Object.entries({ before, after }))
    if (slices === 0) return `no profile is kept of the time ${name}`
  return changedText({ items: functions })
}
