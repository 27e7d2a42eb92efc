import { appendFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { startAdmin, startHostAdmin, TOKEN } from '../support/admin.ts'
import { bucketOf } from '../../workers/histogram.ts'
import { aCrash } from '../support/crash-record.ts'
import { profileOf } from '../support/cpu-profile.ts'
import { afterTurnsOf, aMember, aRollout, createFakeFleet, inTurnOf } from '../support/fake-fleet.ts'
import { tempFolder } from '../support/folder.ts'
import { present } from '../support/present.ts'
import { report } from '../support/vitals.ts'
import type { Scene } from './camera.ts'
import type { TestOwner } from '../support/deck.ts'
import type { DeckEvent, NewEvent } from '../../server/events/stream.ts'
import type { CrashGroup } from '../../server/crashes/api.ts'

/** A shop that has been served for days, and is well: what nobody can wait for is told to a deck without processes. */
type Admin = Pick<Awaited<ReturnType<typeof startAdmin>>, 'deck' | 'history'>
export type Shop = Scene & { close: () => Promise<unknown> } & Admin

const SLOTS = [1, 2, 3, 4]
const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const CHART_S = 15 * 60
const MEGABYTE = 1024 ** 2
/** share of all requests, ms, how often one fails */
const ROUTES: [string, number, number, number?][] = [['GET /products', 0.55, 6], ['GET /products/:id', 0.25, 9], [
  'POST /checkout',
  0.1,
  31,
  0.05
], ['GET /cart', 0.08, 5], ['GET /reports/:month', 0.02, 240, 0.02]]
const REAL_TIMERS = { setTimeout, clearTimeout, setInterval, clearInterval }

export async function openShop (owner: TestOwner): Promise<Shop> {
  const site = await startAdmin(owner, { now: Date.now, timers: REAL_TIMERS })
  furnish(owner, site)
  return sceneOf(site, site)
}

/** The same as one of two apps of a host. */
export async function openShopInHost (owner: TestOwner): Promise<Shop> {
  const site = await startHostAdmin(owner, { now: Date.now, timers: REAL_TIMERS })
  const { history } = present(site.apps.opened('shop'))
  const shop = { deck: site.apps.deck('shop'), history }
  furnish(owner, shop)
  return sceneOf({ ...site, url: `${site.url}/apps/shop` }, shop)
}

function sceneOf ({ url, admin }: Pick<Awaited<ReturnType<typeof startAdmin>>, 'url' | 'admin'>,
  { deck, history }: Admin): Shop
{
  return { url, signInLink: admin.signInLink,
    ask: async (where) =>
      (await fetch(`${url}/api/v1${where}`, { headers: { authorization: `Bearer ${TOKEN}` } })).json(),
    close: () => admin.close(), deck, history }
}

function furnish (owner: TestOwner, { deck, history }: Admin) {
  deck.set({ app: { ...deck.snapshot().app, name: 'shop', entry: '/srv/shop/app.js', cwd: '/srv/shop' },
    desiredWorkers: SLOTS.length, readyWorkers: SLOTS.length, finishedWorkers: 0, nextRestartAt: null,
    master: { ...deck.snapshot().master, pid: 4000, startedAt: ago(76 * HOUR_MS), rssBytes: 62 * MEGABYTE },
    release: { ...deck.snapshot().release, id: 'r3', entry: '/srv/shop/app.js', path: '/srv/shop',
      createdAt: ago(2 * HOUR_MS) }, workers: SLOTS.map(workerOf) })
  tellReleases(deck)
  tellPast({ deck, history })
  deck.fleet = fleetOf(history)
  for (let second = nowS() - CHART_S; second < nowS(); second++) live(deck, second)
  const timer = setInterval(() => live(deck, nowS()), 1000)
  owner.after(() => clearInterval(timer))
  for (const [minutes, line] of [[9, 'cache warmed: 4,210 products'], [5, 'GET /products 200 8 ms'], [4,
    'POST /checkout 201 31 ms'], [2, 'GET /cart 200 5 ms'], [1, 'GET /products?page=2 200 9 ms']] as [number, string][])
  {
    for (const slot of [1, 2])
      appendFileSync(path.join(deck.logs.folder, `slot-${slot}.stdout.log`),
        `${ago(minutes * MINUTE_MS + slot * 700)} ${line}\n`)
  }
}

/**
 * Of which one is silent, one is unwell, and two are in their turns. `history`: of this deck, as all of them tell it.
 */
function fleetOf (history: Admin['history']) {
  const names = [1, 2, 3, 4, 5, 6].map((number) => `web-${number}-shop`)
  const members = names.map((member, index) =>
    aMember({ member, isOwn: index === 0, vitals: { requestsPerSecond: 96 + 7 * index, latencyP99Ms: 14 + 3 * index } })
  )
  Object.assign(members[4], { isSilent: true, ageMs: 3 * MINUTE_MS, code: { version: '1.4.1', commit: null } })
  Object.assign(members[5], { health: { tone: 'warn', text: 'All 4 workers are ready, 1 open crash' }, openCrashes: 1 })
  Object.assign(members[2], { health: { tone: 'info', text: 'Deploying r4: 2 of 4 workers replaced' },
    rollout: { id: 3, kind: 'deploy', state: 'rolling', replaced: 2, total: 4 } })
  const there = names.filter((name) => name !== 'web-5-shop')
  const begun = aRollout(there, { batches: [there.slice(0, 1), there.slice(1, 3), there.slice(3)],
    absent: ['web-5-shop'], note: 'faster totals', at: ago(2 * MINUTE_MS) })
  const rollout = inTurnOf(inTurnOf(afterTurnsOf(begun, 'web-1-shop'), 'web-2-shop', ago(9000)), 'web-3-shop',
    ago(8000))
  rollout.turns['web-3-shop'].rollout = 3
  const fleet = createFakeFleet({ members, rollout,
    past: [{ ...afterTurnsOf(aRollout(there, { at: ago(26 * HOUR_MS) }), ...there), id: 6 }], answer: answerOf })
  fleet.history = async () => ({
    items: history.page({ limit: 40 }).items.map((event: DeckEvent, index: number) => ({ seq: 100 - index, at: event.at,
      member: there[index % 5], app: 'shop', host: members[index % 5].host, event })
    ),
    next: null
  })
  return fleet
}

/** The same fault on three hosts, which is new, and another one on one. */
function crashesOf (member: string): Partial<CrashGroup>[] {
  const at = (minutes: number) => ago(minutes * MINUTE_MS)
  const host = Number(/\d/.exec(member))
  const group = { id: host, state: 'open' as const, cause: 'crash' as const, hasReturned: false, isNewInRelease: false,
    firstRelease: 'r4', lastRelease: 'r4', lastCrash: 1, culprit: null, stateChangedAt: null, stateChangedBy: null,
    goneSince: null, returnedAt: null }
  const [count, minutes] = { 1: [9, 1], 2: [6, 2], 6: [2, 8] }[host] ?? []
  if (host === 4)
    return [{ ...group, fingerprint: `v1:${'2'.repeat(32)}`, kind: 'heap-out-of-memory', errorName: null,
      message: 'worker 7 (slot 3) ran out of memory', count: 1, firstSeenAt: at(300), lastSeenAt: at(300),
      hasReturned: true }]
  return minutes === undefined
    ? []
    : [{ ...group, fingerprint: `v1:${'1'.repeat(32)}`, kind: 'exception', errorName: 'TypeError',
      message: 'Cannot read properties of undefined (reading \'total\')',
      culprit: 'priceOf (/srv/shop/lib/price.js:14:21)', count, firstSeenAt: at(9), lastSeenAt: at(minutes),
      isNewInRelease: true }]
}

/** What a member says of its inside. */
function answerOf (member: string, { path }: { path: string }) {
  const lines = [[48, 'cache warmed: 4,210 products'], [31, 'GET /products 200 8 ms'], [30, 'POST /checkout 201 31 ms'],
    [12, 'stock of "lamp" is low'], [3, 'GET /cart 200 5 ms'], [2, 'GET /products?page=2 200 9 ms']]
  const items = path.startsWith('/logs')
    ? lines.map(([seconds, text], index) => ({ slot: 1 + index % SLOTS.length,
      stream: index === 3 ? 'stderr' : 'stdout', text,
      arrivedAt: ago(Number(seconds) * 1000 + 90 * Number(/\d/.exec(member))),
      place: `${1 + index % SLOTS.length}o${100 * index}` })
    )
    : path.startsWith('/crashes')
    ? crashesOf(member)
    : SLOTS.map((slot) => ({ ...workerOf(slot), drifted: false, orphan: false,
      vitals: { requestsPerSecond: 20 + slot, latencyP99Ms: 14 + slot, rssBytes: (80 + slot) * MEGABYTE,
        cpuPercent: 6 * slot } })
    )
  return { status: 200, body: { items, next: null } }
}

function workerOf (slot: number) {
  return { id: 8 + slot, slot, pid: pidOf(slot), state: 'ready', release: 'r3',
    startedAt: ago(2 * HOUR_MS - slot * 3000), readyAt: ago(2 * HOUR_MS - slot * 3000 - 800),
    restarts: slot === 3 ? 1 : 0, crashLooping: false, port: null, logSlot: slot, retryAt: null, finished: null,
    vitals: null }
}

function pidOf (slot: number) {
  return 4100 + slot * 7
}

function tellReleases (deck: Admin['deck']) {
  const [known] = deck.releases.items
  const release = (id: string, hours: number, commit: string, subject: string) => ({ ...known, id,
    entry: '/srv/shop/app.js', path: '/srv/shop', cwd: '/srv/shop', createdAt: ago(hours * HOUR_MS),
    deployedAt: ago(hours * HOUR_MS), servedAt: ago(hours * HOUR_MS), createdBy: 'ada', inUse: id === 'r3',
    isLastGood: id === 'r2', package: { name: 'shop', version: `1.4.${id.slice(1)}` },
    git: { commit: commit.repeat(8), branch: 'main', isDirty: false, author: 'Ada', subject },
    changed: { ...known.changed, from: `r${Number(id.slice(1)) - 1}`, environment: [], commit: true } })
  deck.releases.items.splice(0, 1, release('r3', 2, '4be1a', 'Sum the cart once'),
    release('r2', 26, 'c07d2', 'Remember the last address'), release('r1', 76, '91ffe', 'Open the shop'))
}

function tellPast ({ deck, history }: Admin) {
  const tell = (minutes: number, event: NewEvent) =>
    deck.events.publish({ at: ago(minutes * MINUTE_MS), ...event } as NewEvent)
  tell(76 * 60, { type: 'master.started', pid: 4000 })
  const crash = aCrash({ at: ago(30 * HOUR_MS), slot: 3, worker: 3, release: 'r1',
    errorMessage: 'Cannot read properties of undefined (reading \'total\')' })
  history.crashes.record('v1:cart', crash, { culprit: 'sum (src/shop.js)' })
  tell(30 * 60, { type: 'worker.exited', worker: 3, slot: 3, release: 'r1', cause: 'crash', code: 1,
    uptimeMs: 46 * HOUR_MS,
    message: 'worker 3 (slot 3) exited with code 1: TypeError: Cannot read properties of undefined (reading \'total\')',
    detail: { crash: 1, crashGroup: 1 } })
  history.crashes.setState(1, { state: 'resolved', atMs: Date.parse(ago(25 * HOUR_MS)), actor: 'ada' })
  for (const [id, hours, note] of [[1, 26, 'addresses'], [2, 2, 'faster totals']] as [number, number, string][]) {
    const rollout = rolloutOf(id, hours, note)
    tell(hours * 60, { type: 'rollout.started', rollout: id, actor: 'ada', message: note,
      detail: { ...rollout, state: 'rolling', done: false, finishedAt: null } })
    for (const slot of SLOTS) {
      const worker = 4 * id + slot
      tell(hours * 60 - slot / 20, { type: 'worker.ready', worker, slot, release: rollout.to, uptimeMs: 800 })
      tell(hours * 60 - slot / 18, { type: 'worker.exited', worker: worker - 4, slot, release: rollout.from,
        cause: 'deploy', code: 0, uptimeMs: 24 * HOUR_MS, rollout: id })
    }
    tell(hours * 60 - 1, { type: 'rollout.succeeded', rollout: id, actor: 'ada', detail: rollout })
    if (id === 1)
      tell(25 * 60, { type: 'crash.group-resolved', actor: 'ada', message: 'crash group 1 (TypeError) is resolved',
        detail: { crashGroup: 1 } })
  }
  const file = path.join(tempFolder(), 'checkout.cpuprofile')
  writeFileSync(file,
    JSON.stringify(
      profileOf([[1, '(root)', [2, 5, 8]], [2, 'checkout', [3, 4]], [3, 'totalOf', [6]], [4, 'readCart', [7]], [5,
        'listProducts'], [6, 'priceOf'], [7, 'JSON.parse', [], { url: '' }], [8, '(idle)']], [[3, 120], [6, 340], [4,
        60], [7, 180], [5, 240], [2, 40], [8, 4000]])
    ))
  deck.diagnostics.items.splice(0, 1, { ...deck.diagnostics.items[0], id: 1, kind: 'cpu-profile', worker: 9, slot: 1,
    pid: pidOf(1), durationMs: 5000, actor: 'ada', release: 'r3', startedAt: ago(20 * MINUTE_MS),
    finishedAt: ago(19.9 * MINUTE_MS), bytes: 48_200, file })
}

function rolloutOf (id: number, hours: number, note: string) {
  return { id, kind: 'deploy', state: 'succeeded', from: `r${id}`, to: `r${id + 1}`, actor: 'ada', note,
    startedAt: ago(hours * HOUR_MS), finishedAt: ago(hours * HOUR_MS - MINUTE_MS / 5), done: true, reason: null,
    progress: { total: SLOTS.length, replaced: SLOTS.length },
    steps: SLOTS.map((slot) => ({ slot, state: 'done', oldWorker: 4 * id + slot - 4, newWorker: 4 * id + slot,
      startedAt: ago(hours * HOUR_MS - slot * 2400), finishedAt: ago(hours * HOUR_MS - slot * 2400 - 2300) })
    ) }
}

/** What the four workers report of one second: two waves, and some noise. */
function live (deck: Admin['deck'], second: number) {
  const wave = Math.sin(second / 140) + 0.3 * Math.sin(second / 37)
  const workers = SLOTS.map(workerOf)
  for (const slot of SLOTS) {
    const noise = noiseOf(second * SLOTS.length + slot)
    const requests = Math.round(24 + 9 * wave + 5 * noise)
    const own = { cpuPercent: 14 + 6 * wave + 6 * noise,
      rssBytes: (58 + slot + 3 * wave + (second / 30 + slot * 9) % 12) * MEGABYTE,
      heapUsedBytes: (21 + slot) * MEGABYTE, loopDelayP99Ms: 2 + 5 * noise, inFlight: Math.round(2 + 2 * noise) }
    const slowestMs = 13 + 14 * noise
    deck.vitals.accept(8 + slot, slot,
      report({ ...own,
        routes: ROUTES.map(([route, share, ms, failing = 0]) => ({ route, errors: noise > 1 - failing ? 1 : 0,
          latency: [bucketOf(ms * (1 + noise)), Math.ceil(requests * share)] })
        ), loopDelayP50Ms: 0.4, loopDelayMaxMs: 4 + 9 * noise,
        latenciesMs: [slowestMs, ...Array.from({ length: requests - 1 }, (_, index) => 4 + index % 5)] }), 'r3')
    Object.assign(workers[slot - 1], { vitals: { ...own, requestsPerSecond: requests, latencyP99Ms: slowestMs } })
  }
  deck.vitals.turn(second)
  deck.set({ workers })
}

/** @returns 0…1, small more often than large; the same for the same seed */
function noiseOf (seed: number): number {
  const sine = Math.sin(seed * 12.9898) * 43758.5453
  return (sine - Math.floor(sine)) ** 3
}

function ago (ms: number): string {
  return new Date(Date.now() - ms).toISOString()
}

function nowS () {
  return Math.floor(Date.now() / 1000)
}
