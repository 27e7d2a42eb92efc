import { appendFileSync, utimesSync } from 'node:fs'
import path from 'node:path'
import { figuresOf } from '../../server/words/figures.ts'
import { anEvent } from '../support/snapshots.ts'
import { report } from '../support/vitals.ts'
import { HOUR_MS, loadAt, MINUTE_MS, noiseOf, SECOND_MS } from './life.ts'
import type { NewEvent } from '../../server/events/stream.ts'
import type { startHostAdmin } from '../support/admin.ts'
import type { TestOwner } from '../support/deck.ts'

/** What runs on the host of the shop beside it: a search in Python, a mailer that fails, and a shop of before. */
type Apps = Awaited<ReturnType<typeof startHostAdmin>>['apps']
type Search = ReturnType<Apps['deck']>

const MEGABYTE = 1024 ** 2
const UP_HOURS = 30

export function addNeighbours (owner: TestOwner, { apps }: { apps: Apps }) {
  apps.open('search')
  const search = apps.deck('search')
  tellSearch(search)
  apps.open('mail')
  apps.closeApp('mail', { cwd: '/srv/mail', entry: '/srv/mail/app.js', state: 'failed',
    reason: 'worker 1 (slot 1) exited with code 1 before it was ready: Error: SMTP_URL is not set', isRetried: true,
    nextTryAt: new Date(Date.now() + MINUTE_MS / 2).toISOString() })
  apps.lastWords.lines = ['mail 2.1 starts', 'Error: SMTP_URL is not set',
    '    at readSettings (/srv/mail/app.js:7:11)']
  apps.open('old-shop')
  apps.closeApp('old-shop', { cwd: '/srv/old-shop', entry: '/srv/old-shop/app.js', state: 'stopped' })
  const at = new Date(Date.now() - 3 * HOUR_MS).toISOString()
  apps.lastWordsOf.set('old-shop', { crashes: [], lines: ['GET /products 200 11 ms', 'GET /cart 200 9 ms'],
    events: [anEvent({ id: 9, at, type: 'master.stopped', uptimeMs: 4 * 24 * HOUR_MS }),
      anEvent({ id: 8, at, type: 'worker.exited', worker: 2, slot: 1, cause: 'shutdown', actor: 'ada' })] })
  const tell = () => {
    reportSearch(search, Math.floor(Date.now() / SECOND_MS))
    for (const name of ['search', 'shop']) tellFigures(apps, name)
  }
  tell()
  const timer = setInterval(tell, SECOND_MS)
  owner.after(() => clearInterval(timer))
}

/** As the host says them of an app that runs. */
function tellFigures (apps: Apps, name: string) {
  const { workers, master, release, app: { entry, addresses } } = apps.deck(name).snapshot()
  const [last] = apps.deck(name).releases.items.filter(({ outcome }) => outcome !== null)
  apps.set(name, { ...figuresOf(workers), cwd: `/srv/${name}`, entry, addresses, startedAt: master.startedAt,
    openCrashes: apps.deck(name).crashes.counts().open, release: release.id,
    lastDeploy: { state: last.outcome ?? '', release: last.id, finishedAt: last.deployedAt } })
}

/** Two workers that have served since yesterday. */
function tellSearch (deck: Search) {
  const at = new Date(Date.now() - UP_HOURS * HOUR_MS).toISOString()
  const { app, master, release, workers } = deck.snapshot()
  const place = { entry: '/srv/search/serve.py', cwd: '/srv/search' }
  deck.set({ app: { ...app, ...place, program: 'python3', addresses: ['http://localhost:8090'] },
    master: { ...master, startedAt: at, nodeVersion: process.version },
    release: { ...release, entry: place.entry, path: place.cwd, createdAt: at, runtime: 'other' },
    workers: workers.map((worker) => ({ ...worker, runtime: 'other' as const, startedAt: at, readyAt: at })) })
  Object.assign(deck.releases.items[0], { ...place, path: place.cwd, createdAt: at, deployedAt: at, servedAt: at,
    git: { ...deck.releases.items[0].git, isDirty: false, subject: 'Search by name', author: 'Ada' } })
  deck.diagnostics.items.splice(0)
  const tell = (event: NewEvent) => deck.events.publish({ at, ...event } as NewEvent)
  tell({ type: 'master.started', actor: 'system', pid: master.pid })
  for (const { id: worker, slot, pid } of workers) {
    for (const type of ['worker.forked', 'worker.online', 'worker.ready'])
      tell({ type, worker, slot, pid, release: 'r1', ...(type === 'worker.ready' && { uptimeMs: 1900 }) })
    const file = path.join(deck.logs.folder, `slot-${slot}.stdout.log`)
    appendFileSync(file, 'INFO:     Application startup complete.\n')
    utimesSync(file, new Date(at), new Date(at))
  }
  const now = Math.floor(Date.now() / SECOND_MS)
  for (let second = now - 3 * 60 * 60; second < now; second += second < now - 15 * 60 ? 10 : 1)
    reportSearch(deck, second)
}

/** No program of another language reports itself: this is what the system tells. */
function reportSearch (deck: Search, second: number) {
  const { workers } = deck.snapshot()
  for (const { id, slot } of workers) {
    deck.vitals.accept(Number(id), slot, { ...report(), statuses: undefined,
      rssBytes: (48 + 3 * noiseOf(second + slot)) * MEGABYTE,
      cpuPercent: loadAt(second) / 9 + 4 * noiseOf(second * 3 + slot), openConnections: Math.round(loadAt(second) / 8),
      processes: 1, threads: 6, descriptors: 21 }, 'r1')
  }
  deck.vitals.turn(second)
  deck.set(
    { workers: workers.map((worker) => ({ ...worker, vitals: deck.vitals.latest(Number(worker.id)) })) } as Parameters<
      typeof deck.set
    >[0]
  )
}
