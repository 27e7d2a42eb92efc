import { copyFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { openHistory } from '../../../db/history.ts'
import { tempFolder } from '../../support/folder.ts'
import type { Part } from './measure.ts'
import type { EventQuery } from '../../../db/event-search.ts'
import type { DeckEvent } from '../../../server/events/stream.ts'
import type { TestOwner } from '../../support/deck.ts'

const CALLS = 200
const START_MS = Date.UTC(2026, 0, 1)
/** the file with so many events */
const files: Map<number, string> = new Map()

/** What the history does with all the events that it keeps. */
export const EVENT_PARTS: Readonly<Record<string, Part>> = Object.freeze({
  record: { title: 'recording one more', unit: 'event', open (n, owner) {
    const { history, file } = open(n, owner)
    const { size } = statSync(file)
    let id = n
    return { times: CALLS, bytes: () => size, run () {
      for (let call = 0; call < CALLS; call++) history.record(eventAt(++id, n))
    } }
  } },
  newest: pageOf('the newest page of the history', {}),
  filtered: pageOf('a page of one type, slot and cause', { type: 'worker.exited', slot: 5, cause: 'hung' }),
  words: pageOf('a page of some words', { q: 'needle in the haystack' }),
  open: { title: 'opening it, as at each start of a master', unit: 'event', open (n) {
    const file = fileOf(n)
    return { run: () => openHistory({ file, retention: { maxAgeMs: Infinity, maxEvents: n } }).close() }
  } }
})

function pageOf (title: string, wanted: EventQuery): Part {
  return { title, unit: 'event', open (n, owner) {
    const { history } = open(n, owner)
    return { times: CALLS, run () {
      for (let call = 0; call < CALLS; call++) history.page(wanted)
    } }
  } }
}

function open (n: number, owner: TestOwner) {
  const file = path.join(tempFolder(), 'history.db')
  copyFileSync(fileOf(n), file)
  const history = openHistory({ file })
  owner.after(() => history.close())
  return { file, history }
}

/** It is filled once. */
function fileOf (n: number) {
  const known = files.get(n)
  if (known) return known
  const file = path.join(tempFolder(), 'history.db')
  const history = openHistory({ file })
  for (let id = 1; id <= n; id++) history.record(eventAt(id, n))
  history.close()
  files.set(n, file)
  return file
}

/**
 * One a second, and sometimes one of a kind that is rare.
 * @param total how many there will be: those of the second half are of another release
 */
function eventAt (id: number, total: number): DeckEvent {
  const types = ['worker.forked', 'worker.online', 'worker.ready', 'worker.draining', 'worker.exited',
    'worker.restarted']
  const type = id % 100_000 === 1
    ? 'master.started'
    : id % 1000 === 7
    ? 'unexpected'
    : id % 50_000 < 20
    ? 'rollout.step'
    : types[id % types.length]
  const exited = type === 'worker.exited'
  const cause = exited ? (id % 250_000 === 4 ? 'hung' : ['crash', 'deploy', 'restart'][Math.floor(id / 6) % 3]) : null
  return { id, at: new Date(START_MS + id * 1000).toISOString(), type, cause, slot: id % 8 + 1,
    worker: Math.floor(id / 6), pid: 1000 + id % 30_000, release: id < total / 2 ? 'r1' : 'r2',
    rollout: type.startsWith('rollout.') ? Math.floor(id / 50_000) + 1 : null, actor: null, code: exited ? 1 : null,
    signal: null, uptimeMs: exited ? id * 7 % 1e7 : null,
    message: id === 40_003
      ? 'the needle in the haystack'
      : `worker ${Math.floor(id / 6)} (slot ${id % 8 + 1}) ${
        exited ? 'exited with code 1: Error: connect ECONNREFUSED 10.0.0.7:5432' : 'moved on'
      }`,
    detail: type === 'unexpected'
      ? { input: 'x'.repeat(12_000) }
      : exited
      ? { errorName: 'Error', stack: 'at handler (/srv/app/app.js:12:3)\n'.repeat(12) }
      : type.startsWith('rollout.')
      ? { id: 1, kind: 'deploy', state: 'rolling' }
      : null }
}
