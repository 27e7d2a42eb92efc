import { copyFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { openHistory } from '../../../db/history.ts'
import { tempFolder } from '../../support/folder.ts'
import { eventAt } from '../event-samples.ts'
import type { Part } from './measure.ts'
import type { EventQuery } from '../../../db/event-search.ts'
import type { TestOwner } from '../../support/deck.ts'

const CALLS = 200
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
