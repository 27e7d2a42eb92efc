import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DeckError } from '../../../server/errors.ts'
import { fleetGaps } from '../../../server/fleet/page-gaps.ts'
import { fleetHistoryModel } from '../../../server/fleet/page-history.ts'
import { createViews } from '../../../server/dashboard/views.ts'
import { fake, type Parts } from '../../support/fake.ts'
import type { AppFleet } from '../../../server/fleet/app-fleet.ts'
import type { Member } from '../../../server/fleet/presence.ts'

const NOTHING = { cause: null, slot: null, worker: null, pid: null, release: null, rollout: null, actor: null,
  code: null, signal: null, uptimeMs: null, message: null, detail: null }
const MEMBERS = [{ member: 'one', isOwn: true, url: null }, { member: 'two', isOwn: false,
  url: 'https://two.example/deck/' }, { member: 'three', isOwn: false, url: null }]

function itemOf (member: string, event: object) {
  return { seq: 7, at: '2026-01-01T00:00:01.000Z', member, app: 'shop', host: 'host-1',
    event: { id: 3, at: '2026-01-01T00:00:00.000Z', type: 'worker.ready', ...NOTHING, worker: 4, slot: 1, ...event } }
}

type Item = Parts<Awaited<ReturnType<AppFleet['history']>>['items'][number]>

/** `losses`: what the members said of theirs */
function modelOf (items: Item[],
  { next = null, params = '', asked = [], losses = [], members = MEMBERS }: { next?: number | null, params?: string,
    asked?: unknown[], losses?: Item[], members?: Partial<Member>[] } = {})
{
  const fleet = fake<AppFleet>({ status: () => ({ members }), async history (wanted) {
    if (wanted.types?.[0] === 'history.recovered') return { items: losses, next: null }
    asked.push(wanted)
    return { items, next }
  } })
  return fleetHistoryModel({ deck: { fleet }, params: new URLSearchParams(params || 'member=*'), now: () => 0 })
}

test('each event says whose it is, and leads to its page where that is known', async () => {
  const { rows } = await modelOf(['one', 'two', 'three', 'gone'].map((member) => itemOf(member, {})))
  assert.deepEqual(
    rows.flatMap((row) => row.id === null ? [row.event] : row.events).map((
      { member, host, sentence, url }
    ) => [member, host, sentence, url]),
    [['one', 'host-1', 'Worker 4 (slot 1) is ready', '/history/3'], ['two', 'host-1', 'Worker 4 (slot 1) is ready',
      'https://two.example/deck/history/3'], ['three', 'host-1', 'Worker 4 (slot 1) is ready', null], ['gone', 'host-1',
      'Worker 4 (slot 1) is ready', null]]
  )
})

test('the filters and the place of a page are in its address, and what is asked for', async () => {
  const asked: unknown[] = []
  const { links, canonicalUrl } = await modelOf([itemOf('one', {})], { next: 40,
    params: 'member=one&type=worker.exited,scale.*&cursor=90', asked })
  assert.deepEqual(asked, [{ member: 'one', types: ['worker.exited', 'scale.*'], limit: 50, before: 90 }])
  assert.equal(canonicalUrl, '/history?member=one&type=worker.exited%2Cscale.*&cursor=90')
  assert.deepEqual([links.older, links.newer], ['/history?member=one&type=worker.exited%2Cscale.*&cursor=40&trail=90',
    '/history?member=one&type=worker.exited%2Cscale.*'])
})

test('routine events of several members fold into one row that names them, and a search unfolds it', async () => {
  const routine = ['one', 'two', 'one', 'three', 'two'].map((member, index) => ({ ...itemOf(member, { id: 1 }),
    seq: 20 - index })
  )
  const { rows: [fold, ...rest] } = await modelOf([...routine, {
    ...itemOf('one', { type: 'worker.exited', cause: 'crash' }),
    at: '2026-01-01T00:10:00.000Z'
  }])
  assert.ok(fold.id !== null && 'members' in fold)
  assert.deepEqual([fold.id, fold.summary, fold.members, fold.events.length], ['fold-16', '5 workers became ready', [
    'one',
    'three',
    'two'
  ], 5])
  assert.equal(rest[0].id === null && rest[0].event.arrivedAt, '2026-01-01T00:10:00.000Z')
  const asked: unknown[] = []
  const { rows, ranges, canonicalUrl } = await modelOf(routine, { params: 'member=*&q=ready&range=1h', asked })
  assert.equal(rows.length, 5)
  assert.deepEqual(asked, [{ q: 'ready', since: -3_600_000, types: undefined, member: undefined, limit: 50,
    before: null }])
  assert.deepEqual([ranges.find(({ isCurrent }) => isCurrent)?.label, canonicalUrl], ['Last hour',
    '/history?member=*&q=ready&range=1h'])
})

test('a host that cannot write its history is named, and so is what it has lost, where the page is about it', async () => {
  const [since, from, to] = ['2026-01-01T12:03:00.000Z', '2026-01-01T12:04:00.000Z', '2026-01-01T12:05:00.000Z']
  const members = [MEMBERS[0], { ...MEMBERS[1], unwritten: { problem: 'disk is full (SQLITE_FULL)', since } }]
  const lossOf = (member: string, detail: object | null) => itemOf(member, { type: 'history.recovered', detail })
  const losses = [lossOf('three', { since, lost: 34, from, to }), lossOf('two', { lost: 0 }),
    lossOf('two', { lost: 1, from: '<b>', to }), lossOf('two', null)]
  const gapsOf = async (params: string) => (await modelOf([], { members, losses, params })).gaps
  const { unwritten, lost } = await gapsOf('')
  assert.deepEqual([unwritten, lost.map((gap) => [gap.member, gap.lost])], [[{ member: 'two',
    problem: 'disk is full (SQLITE_FULL)', since }], [['three', 34]]])
  for (const elsewhere of ['member=one', 'member=*&until=2026-01-01T12:00:00Z'])
    assert.deepEqual(await gapsOf(elsewhere), { unwritten: [], lost: [], isOfCrashes: false }, elsewhere)
  const views = createViews({ software: 'clusterdeck' })
  const text = views.render('partials/history-gaps', { gaps: await gapsOf('') }).replace(/<svg.*?<\/svg>/gs, '')
    .replace(/<[^>]*>/g, '').replace(/\s+/g, ' ')
  assert.match(text,
    /The history of two has not been written since .*: disk is full \(SQLITE_FULL\)\. Events since then are missing here/)
  assert.match(text,
    /The history of three could not be written from .*\. 34 events of three are missing: from .* to .*\./)
})

test('what a fleet has lost is asked for again where there was no answer, and else once in a while', async () => {
  let asked = 0
  const fleet = fake<AppFleet>({ status: () => ({ members: [] }), async history () {
    asked++
    if (asked === 1) throw new DeckError('fleet-away', 'The fleet is out of reach: no')
    return {
      items: [
        itemOf('two', { type: 'history.recovered',
          detail: { lost: 3, from: '2026-01-01T12:04:00.000Z', to: '2026-01-01T12:05:00.000Z' } })
      ],
      next: null
    }
  } })
  const lostAt = async (now: number) => (await fleetGaps(fleet, { now })).lost.map(({ lost }) => lost)
  assert.deepEqual([await lostAt(0), await lostAt(1), await lostAt(2), asked], [[], [3], [3], 2])
})

test('what another deck says is text, whatever it says', async () => {
  const model = await modelOf([
    itemOf('two', { type: 'rollout.started', rollout: 1, message: '<img src=x>',
      detail: { kind: 'restart', steps: [null] } }),
    itemOf('two', { type: 'worker.exited', cause: '<b>', actor: '"><script>', detail: { crash: {}, crashGroup: [] } }),
    itemOf('two', { type: 'not.known', message: null })
  ])
  const html = createViews().render('pages/history', { ...model, hasFleet: true })
  assert.doesNotMatch(html, /<img|<b>|<script>(?!<)/)
  assert.match(html, /&lt;img src=x&gt;/)
  assert.match(html, /not\.known/)
})

test('a fleet that is out of reach, a deck in none, and a wrong filter each say so', async () => {
  const away = { status: () => ({ members: [] }), history: () => {
    throw new DeckError('fleet-away', 'The fleet is out of reach: no')
  } }
  for (const [fleet, params, status, message] of [[away, 'member=*', 503, /out of reach: no/], [null, 'member=*', 409,
    /fleet\.servers/], [away, 'member=a b', 400, /member: expected the name of a member/], [away, 'member=*&cursor=abc',
    400, /cursor: expected/]] as const)
  {
    const { problem, rows } = await fleetHistoryModel({ deck: { fleet: fleet && fake(fleet) },
      params: new URLSearchParams(params), now: () => 0 })
    assert.equal(problem?.status, status)
    assert.match(String(problem?.message), message)
    assert.deepEqual(rows, [])
  }
})
