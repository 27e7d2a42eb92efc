import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { createSettings } from '../../server/config/settings.ts'
import { SCHEMA } from '../../server/config/options.ts'
import { durationText } from '../../server/lifecycle/duration.ts'
import { profileOf } from '../support/cpu-profile.ts'
import { createFakeJobs } from '../support/fake-jobs.ts'
import { tempFolder } from '../support/folder.ts'
import { present } from '../support/present.ts'
import { createLife, HOUR_MS, lineOf, loadAt, MINUTE_MS, noiseOf, SECOND_MS, SLOTS, type Admin, type createClock,
  type Life } from './life.ts'
import { placeOf, type Commit } from './release-book.ts'
import type { Admin as Site } from '../support/admin.ts'

/**
 * Six days of the shop. Ada and Grace write it. r3 crashes at empty carts and is taken back, r4 mends that; a report
 * hangs a worker, r5 tries a cache and fails as a canary, r6 writes reports in a thread and serves since.
 */
export type Ending = (life: Life, end: number) => void
type Users = Pick<Site, 'tokenFor' | 'signInBy'>

const DAYS = 6
export const COMMITS: Record<string, Commit> = {
  r2: { subject: 'Remember the last address', author: 'Grace', files: ['lib/address.js', 'routes/checkout.js'] },
  r3: { subject: 'Sum the cart once', author: 'Grace', files: ['lib/cart.js', 'routes/checkout.js'] },
  r4: { subject: 'Sum empty carts, too', author: 'Grace', files: ['lib/cart.js', 'test/cart.test.js'] },
  r5: { subject: 'Keep products in a cache', author: 'Ada', environment: ['CACHE_URL'],
    files: ['lib/cache.js', 'routes/products.js'] },
  r6: { subject: 'Write reports in a thread', author: 'Ada', before: ['Keep no products in a cache'],
    files: ['lib/report.js', 'lib/report-thread.js'] },
  r7: { subject: 'Read prices from the settings', author: 'Grace', files: ['lib/price.js', 'settings.json'] }
}
/** of r7 */
export const SEVENTH_NOTE = 'prices by file'
const CANARY = { canary: { workers: 1, durationMs: MINUTE_MS } }
export const OF_EMPTY_CART = { errorName: 'TypeError',
  errorMessage: 'Cannot read properties of undefined (reading \'total\')',
  frames: ['totalOf (~/lib/cart.js:14:21)', 'checkout (~/routes/checkout.js:31:17)',
    'Layer.handle (/srv/shop/node_modules/express/lib/router/layer.js:95:5)'],
  requests: [{ method: 'POST', path: '/checkout', ageMs: 4 }] }
const OF_REPORT = { frames: ['rowsOf (~/lib/report.js:48:12)', 'writeReport (~/lib/report.js:22:5)'],
  requests: [{ method: 'GET', path: '/reports/2026-10', ageMs: 10_400, isHanging: true }] }
const OF_DATABASE = { errorName: 'Error', errorMessage: 'connect ECONNREFUSED 10.0.0.7:5432',
  frames: ['connect (~/lib/database.js:9:11)', '~/app.js:12:1'] }
const OF_SETTINGS = { errorName: 'SyntaxError', errorMessage: 'Unexpected token \'}\' in settings.json',
  frames: ['readPrices (~/lib/price.js:7:15)', '~/app.js:15:1'] }
/** When it is slow, in hours before the end, for how many minutes, and how many times */
const SLOW = [{ route: 'GET /products/:id', hours: 20, minutes: 9, times: 45 }, { route: 'POST /checkout', hours: 0.75,
  minutes: 7, times: 28 }]
const BUSY: Record<string, string> = { 'lib/list.js': 'listProducts', 'lib/price.js': 'priceOf',
  'lib/cart.js': 'totalOf', 'lib/report-thread.js': 'rowsOf' }
const JOBS = {
  nightly: { cron: '0 3 * * *', command: 'node jobs/report.js', overlap: 'skip' as const, timeoutMs: HOUR_MS,
    timeZone: 'UTC' },
  stock: { cron: '*/30 * * * *', command: 'node jobs/stock.js', overlap: 'skip' as const, timeoutMs: 60_000,
    timeZone: 'UTC' }
}

export const ENDINGS: Record<string, Ending> = {
  /** Two slots are replaced, and the third worker does not come. */
  deploying (life, end) {
    life.plan(end - 40 * SECOND_MS, () => {
      life.boots(({ slot }) => ({ readyMs: slot > 2 ? null : 900 }))
      deploySeventh(life, { limits: { readyTimeoutMs: 600_000 } })
    })
  },
  held (life, end) {
    life.plan(end - 3 * MINUTE_MS, () => {
      life.boots(({ slot, release }) => release === 'r7' && slot === 3 ? diesAtLoad(OF_DATABASE) : { readyMs: 900 })
      deploySeventh(life, { onFailure: 'hold' })
    })
  },
  failed (life, end) {
    life.plan(end - 3 * MINUTE_MS, () => {
      life.boots(({ release }) => release === 'r7' ? diesAtLoad(OF_SETTINGS) : { readyMs: 900 })
      deploySeventh(life)
    })
  },
  /** A deploy succeeds, and what it brings then crashes again and again. */
  guarded (life, end) {
    life.plan(end - 8 * MINUTE_MS, () => deploySeventh(life))
    life.plan(end - 5 * MINUTE_MS, () => {
      life.boots(({ release }) => ({ readyMs: 900, ...(release === 'r7' && dies(OF_EMPTY_CART)) }))
      for (const slot of SLOTS) life.crash(slot, OF_EMPTY_CART)
    })
  },
  'crash-looping' (life, end) {
    life.plan(end - 2 * MINUTE_MS, () => {
      life.boots(({ slot }) => ({ readyMs: 700, ...(slot === 3 && dies(OF_EMPTY_CART)) }))
      return life.crash(3, OF_EMPTY_CART)
    })
  },
  'nobody-serves' (life, end) {
    life.plan(end - 3 * MINUTE_MS, () => {
      life.boots(() => diesAtLoad(OF_DATABASE))
      for (const slot of SLOTS) life.crash(slot, OF_DATABASE)
    })
  }
}

/** Tells all of it to a deck without processes, up to this moment. */
export async function tellStory (admin: Admin, users: Users,
  { clock, ending = () => {}, isBrief }: { clock: ReturnType<typeof createClock>, ending?: Ending,
    isBrief?: boolean }): Promise<Life>
{
  const { deck } = admin
  const end = Date.now()
  const from = end - DAYS * 24 * HOUR_MS
  const ago = (hours: number) => end - hours * HOUR_MS
  furnish(deck, from)
  const life = createLife(admin, clock, { from, end, isBrief })
  deck.events.publish({ type: 'master.started', pid: 4000, actor: 'system' })
  life.serves(({ route, ms }, { release, at }) => ({
    ms: ms * slownessOf(route, end, at) * (release === 'r5' && route.startsWith('GET /products') ? 14 : 1),
    ...(release === 'r6' && route === 'GET /reports/:month' && { ms: 180 })
  }))
  life.each((second) => writeLog(life, second, end))

  life.plan(ago(143), () => tellUsers(deck, users, life, ago))
  life.plan(ago(98), () => deploy(life, 'r2', 'grace', 'addresses'))
  life.plan(ago(27), () => deploy(life, 'r3', 'grace', 'faster totals'))
  for (const [index, slot] of [3, 1, 4, 3, 2, 1].entries())
    life.planMoment(ago(26.9) + index * 100 * SECOND_MS, () => life.crash(slot, OF_EMPTY_CART))
  life.plan(ago(26.6), () => life.rollBack('r2', { actor: 'ada', note: 'crashes at empty carts' }))
  life.plan(ago(23), () => deploy(life, 'r4', 'grace', 'empty carts'))
  life.plan(ago(22.5), () => deck.crashes.act(1, 'resolve', 'grace'))
  life.planMoment(ago(2.8), () => life.hang(2, OF_REPORT))
  life.plan(ago(7), () => deploy(life, 'r5', 'ada', 'faster lists', CANARY))
  life.plan(ago(6.8), () => {
    for (const { id } of deck.notices.list()) deck.notices.acknowledge(id, 'ada')
  })
  life.plan(ago(2.2), () => deploy(life, 'r6', 'ada', 'reports beside requests (rollout 6 of the fleet)', CANARY))
  life.plan(ago(1.6), () => deck.crashes.act(2, 'resolve', 'ada'))
  planJobs(admin, life, { from, end })
  ending(life, end)
  await life.arrive()
  beginJobs(admin)
  tellLooks(deck, ago)
  tellOwnMetrics(deck, end)
  return life
}

function deploy (life: Life, id: string, actor: string, note: string, strategy = {}) {
  life.deploy(COMMITS[id], { actor, note, strategy })
}

export function deploySeventh (life: Life, strategy = {}) {
  deploy(life, 'r7', 'grace', SEVENTH_NOTE, strategy)
}

function diesAtLoad (of: typeof OF_DATABASE) {
  return { readyMs: null, dies: { afterMs: 400, of } }
}

function dies (of: typeof OF_EMPTY_CART) {
  return { dies: { afterMs: 300, of } }
}

function slownessOf (route: string, end: number, at: number) {
  const spell = SLOW.find(({ hours, minutes, ...slow }) => {
    const since = end - hours * HOUR_MS
    return slow.route === route && at >= since && at < since + minutes * MINUTE_MS
  })
  return spell?.times ?? 1
}

/** What is there besides workers. */
function furnish (deck: Admin['deck'], from: number) {
  const place = { entry: '/srv/shop/app.js', cwd: '/srv/shop' }
  const { app, master } = deck.snapshot()
  deck.set({ app: { ...app, name: 'shop', ...place, addresses: ['http://localhost:8080'] },
    master: { ...master, nodeVersion: process.version, startedAt: new Date(from).toISOString(),
      rssBytes: 62 * 2 ** 20 } })
  deck.settings = createSettings(
    { ...SCHEMA.parse({ diagnostics: { profiling: 'on' } }), ...place, dataDir: '/srv/shop/.clusterdeck', workers: 4,
      jobs: JOBS } as Parameters<typeof createSettings>[0],
    { key: 'key' }
  )
  deck.report = { ...deck.report, checkedAt: new Date().toISOString(), problems: 1,
    items: [{ id: 'descriptors', severity: 'warning', title: 'A worker may open 1,024 files (ulimit -n)',
      why: 'Each connection is a file, so a worker accepts no more than about 924 of them.',
      mend: [{ how: 'command', text: 'sudo prlimit --pid $$ --nofile=65536:65536',
        where: 'the shell that starts the app anew' }] },
      ...deck.report.items.filter(({ severity }) => ['unknown', 'info', 'ok'].includes(severity))] }
}

/** Ada runs the shop, Grace works on it. Both come now and then. */
async function tellUsers (deck: Admin['deck'], users: Users, life: Life, ago: (hours: number) => number) {
  const ada = await users.tokenFor('ada', 'admin')
  const grace = await users.tokenFor('grace', 'operator')
  deck.alerts.add(
    { wanted: { kind: 'slack', name: 'shop-alerts', url: 'https://hooks.slack.com/services/T0A/B0B/c' },
      actor: 'ada' } as Parameters<typeof deck.alerts.add>[0]
  )
  for (const [hours, { token }] of [[98.1, grace], [27.1, grace], [26.7, ada], [7.2, ada], [2.75, ada], [0.4,
    grace]] as [number, typeof ada][])
    life.plan(ago(hours), () => users.signInBy(token))
}

/** From now on they run by the clock of this machine, each in no time. */
function beginJobs ({ deck, history }: Admin) {
  const jobs = createFakeJobs({ history, events: deck.events, jobs: JOBS })
  deck.events.subscribe(({ type }) => {
    if (type === 'job.started') setImmediate(() => jobs.commands.at(-1)?.finish())
  })
  jobs.start({ runs: [], due: {} })
  deck.jobs = jobs
}

function planJobs ({ deck, history }: Admin, life: Life, { from, end }: { from: number, end: number }) {
  const half = 30 * MINUTE_MS
  const failing = Math.floor((end - 9 * HOUR_MS) / half) * half
  for (let at = Math.ceil((end - 24 * HOUR_MS) / half) * half; at < end - 2 * MINUTE_MS; at += half)
    life.plan(at,
      () =>
        run('stock', at, at === failing ?
          { code: 1, seconds: 31, output: 'asking the warehouse\nError: connect ETIMEDOUT 10.0.0.9:443\n' } :
          { code: 0, seconds: 4 + 3 * noiseOf(at / half),
            output: `asking the warehouse\n${Math.round(40 + 60 * noiseOf(at / half + 1))} products have changed\n` }))
  const day = 24 * HOUR_MS
  for (let at = Math.ceil(from / day) * day + 3 * HOUR_MS; at < end - half; at += day)
    life.plan(at,
      () =>
        run('nightly', at, { code: 0, seconds: 160 + 40 * noiseOf(at / day), output: 'report of yesterday written\n' }))

  function run (job: string, dueAt: number,
    { code, seconds, output }: { code: number, seconds: number, output: string })
  {
    const about = { actor: 'cron', release: deck.snapshot().release.id, pid: 30_000 + dueAt / half % 2000 }
    const { id } = deck.events.publish({ type: 'job.started', ...about, message: job,
      detail: { job, command: null, dueAt: new Date(dueAt).toISOString() } })
    life.plan(dueAt + seconds * SECOND_MS, () => {
      deck.events.publish({ type: code === 0 ? 'job.succeeded' : 'job.failed', ...about, code,
        message: code === 0
          ? `${job} took ${durationText(seconds * SECOND_MS)}`
          : `${job} exited with code ${code} after ${durationText(seconds * SECOND_MS)}: ${
            output.trimEnd().split('\n').at(-1)
          }`, detail: { job, run: id, durationMs: Math.round(seconds * SECOND_MS) } })
      history.jobRuns.keepOutput(id, job, output)
    })
  }
}

/** Each second at the end and around what has happened, before that now and then, a worker tells of a request. */
function writeLog (life: Life, second: number, end: number) {
  const leftMs = end - second * SECOND_MS
  const isSeldom = leftMs > 4 * MINUTE_MS && !life.isMoment(second, 20 * SECOND_MS)
  if (isSeldom && (second % 60 !== 0 || leftMs > 3 * HOUR_MS)) return
  for (const { id, slot, state } of life.pool.view.workers) {
    if (id === null || state !== 'ready' || noiseOf(second * 5 + slot) < 0.3) continue
    life.write(slot, lineOf(second * 4 + slot, (route) => slownessOf(route, end, second * SECOND_MS)))
  }
}

/** What Ada and Grace have looked at, and what was profiled all the time. */
function tellLooks (deck: Admin['deck'], ago: (hours: number) => number) {
  const [blank] = deck.diagnostics.items
  const workers = deck.snapshot().workers.filter(({ id, pid }) => id !== null && pid !== null)
  const file = path.join(tempFolder(), 'checkout.cpuprofile')
  const inFile = (name: string) => ({ url: `file://${placeOf(deck.snapshot().release.id)}/${name}` })
  const profile = profileOf([[1, '(root)', [2, 5, 8]], [2, 'checkout', [3, 4], inFile('routes/checkout.js')], [3,
    'totalOf', [6], inFile('lib/cart.js')], [4, 'readCart', [7], inFile('lib/cart.js')], [5, 'listProducts', [],
    inFile('lib/list.js')], [6, 'priceOf', [], inFile('lib/price.js')], [7, 'JSON.parse', [], { url: '' }], [8,
    '(idle)']], [[3, 120], [6, 340], [4, 60], [7, 180], [5, 240], [2, 40], [8, 4000]])
  writeFileSync(file, JSON.stringify(profile))
  const look = (id: number, hours: number, ms: number, fields: Partial<typeof blank>) => {
    const { id: worker, slot, pid, release } = workers[id % workers.length]
    return { ...blank, id, worker: present(worker), slot, pid: present(pid), release,
      startedAt: new Date(ago(hours)).toISOString(), finishedAt: new Date(ago(hours) + ms).toISOString(), ...fields }
  }
  deck.diagnostics.items.splice(0)
  if (workers.length === 0) return
  deck.diagnostics.items.push(
    look(4, 0.33, 5000, { kind: 'cpu-profile', durationMs: 5000, actor: 'ada', bytes: 48_200, file }),
    look(2, 1.2, 900, { kind: 'heap-snapshot', actor: 'grace', bytes: 31_400_000 })
  )
  const functions: [string, number][] = [['lib/list.js', 260], ['lib/price.js', 140], ['lib/cart.js', 90], [
    'lib/report-thread.js',
    310
  ], ['lib/list.js', 220]]
  for (let n = 0; n < 60 * workers.length; n++) {
    const { id, slot, release } = workers[n % workers.length]
    const [file, ms] = functions[n % functions.length]
    deck.profiling.items.push({ at: ago((n / workers.length + 1) / 60), worker: present(id), slot, release,
      name: `${n}.cpuprofile`, busy: BUSY[file], file: `${placeOf(release)}/${file}`,
      ms: Math.round(ms * (0.8 + 0.4 * noiseOf(n))) })
  }
}

/** What the shop counts by prom-client: one of seventeen requests ends in an order. */
function tellOwnMetrics (deck: Admin['deck'], end: number) {
  const times = Array.from({ length: 240 }, (_, n) => end - (240 - n) * 15 * SECOND_MS)
  const of = (value: (perSecond: number, n: number) => number) => times.map((at, n) => value(loadAt(at / SECOND_MS), n))
  const orders = (share: number) => of((load, n) => load * 0.06 * share * (0.9 + 0.2 * noiseOf(n * share)))
  const paying = (seconds: (n: number) => number) =>
    times.map((at, n) => Math.min(2.5, seconds(n) * slownessOf('POST /checkout', end, at)))
  Object.assign(deck.metricsOfApp, { times, releases: times.map(() => deck.snapshot().release.id),
    metrics: [{ name: 'shop_orders_total', help: 'Orders that were paid', type: 'counter',
      series: [['card', 0.7], ['invoice', 0.3]].map(([by, share]) => ({ labels: { by },
        lines: [{ label: 'rate', values: orders(Number(share)) }] })
      ) }, { name: 'shop_open_carts', help: 'Carts that are not paid yet', type: 'gauge',
      series: [{ labels: {},
        lines: [{ label: '', values: of((load, n) => Math.round(load * 3.2 + 4 * noiseOf(n))) }] }] }, {
      name: 'shop_payment_seconds',
      help: 'How long the payment provider takes',
      type: 'histogram',
      series: [{ labels: {},
        lines: [{ label: 'rate', values: orders(0.7) }, { label: 'mean',
          values: paying((n) => 0.021 + 0.006 * noiseOf(n)) }, { label: 'p99',
          values: paying((n) => noiseOf(Math.floor(n / 24)) > 0.6 ? 0.1 : 0.05) }] }]
    }] })
}
