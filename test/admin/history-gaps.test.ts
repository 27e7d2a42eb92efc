import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startAdmin } from '../support/admin.ts'

const FIRST = '2026-01-01T12:03:00.000Z'
const LAST = '2026-01-01T12:05:00.000Z'
const ENDED = '2026-01-01T12:10:00.000Z'
const WRITTEN = { problem: null, since: null, waiting: 0, lost: 0 }

test('the overview and the pages of history, crashes and a worker say where the history is incomplete, and only there', async (t) => {
  const { deck, history, ...admin } = await startAdmin(t)
  const read = async (path: string) => (await admin.visit(path)).text
  const gapsOn = async (path: string) => {
    const text = await read(path)
    const [, gaps] = /<div class="history-gaps" id="history-gaps">(.*?)<\/div>/s.exec(text) ?? assert.fail(text)
    return gaps.replace(/<svg.*?<\/svg>/gs, '').replace(/<time[^>]*datetime="[^"]*T(\d\d:\d\d)[^"]*"[^>]*>[^<]*/g, '$1')
      .replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ').replace(/ (?=[.:,])/g, '').trim()
  }
  const all = async (paths: string[]) => Promise.all(paths.map(gapsOn))
  deck.set({ history: WRITTEN })
  history.record({ ...deck.events.publish({ type: 'history.recovered', detail: { since: FIRST, lost: 0 } }), id: 90,
    at: FIRST })
  assert.deepEqual(await all(['/history', '/crashes', '/workers/1']), ['', '', ''],
    'what has only waited is there by now')

  assert.doesNotMatch(await read('/'), /data-unwritten|newest events are missing/)

  deck.set({ history: { problem: 'disk is full (SQLITE_FULL)', since: FIRST, waiting: 14, lost: 0 } })
  const unwritten = 'The history has not been written since 12:03: disk is full (SQLITE_FULL).'
  const [shown, crashes, worker] = await all(['/history', '/crashes', '/workers/1'])
  assert.equal(shown,
    `${unwritten} Events since then are missing here until it can be written; they are kept in memory.`)
  assert.equal(crashes,
    `${unwritten} Crashes since then are missing here until it can be written; they are kept in memory.`)
  assert.equal(worker, shown)
  assert.match(await read('/history'), /Not live: the history cannot be written/)
  const crashesText = await read('/crashes')
  assert.match(crashesText, /No crashes until then/)
  assert.doesNotMatch(crashesText, /No crashes</, 'which would be good news')
  // The charts must not say that nothing has happened.
  assert.match(await read('/'),
    /The newest events are missing\.[^]*id="chart-news"[^>]* data-unwritten>|id="chart-news"[^>]* data-unwritten>[^]*The newest events are missing/)
  assert.equal(await gapsOn('/history?until=2026-01-01T12:00:00Z'), '', 'what was before is complete')

  deck.set({ history: WRITTEN })
  const told = { actor: 'system', release: null }
  history.record({ ...deck.events.publish({ ...told, type: 'history.recovered' }), id: 91, at: ENDED,
    detail: { since: FIRST, lost: 34, from: FIRST, to: LAST } })
  history.record({ ...deck.events.publish({ ...told, type: 'crash.records-lost' }), id: 92, at: ENDED,
    detail: { lost: 1, from: FIRST, to: FIRST } })
  const lost = 'The history could not be written from 12:03 to 12:10. 34 events are missing: from 12:03 to 12:05.'
  assert.equal(await gapsOn('/history'), lost)
  assert.match(await read('/history'), /Live: new events appear at the top/)
  assert.equal(await gapsOn('/history?since=2026-01-01T12:04:00Z&until=2026-01-01T13:00:00Z'), lost)
  assert.deepEqual(await all(['/history?until=2026-01-01T12:00:00Z', '/history?since=2026-01-01T12:06:00Z']), ['', ''])
  assert.equal(await gapsOn('/crashes'),
    '1 crash has no record and is not counted here: from 12:03 to 12:03, while the history could not be written.')
})
