import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, rmSync, writeSync } from 'node:fs'
import { createRequire } from 'node:module'
import net from 'node:net'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { io } from 'socket.io-client'
import { openSqlite } from '../../db/sqlite.ts'
import { WORKERS, type Site, type SiteOptions } from './site.ts'
import { lacksSmallDisk } from '../support/small-disk.ts'
import type { Deck } from '../support/deck.ts'

/** The rows of the matrix: what happens to a deck. */
export type Fault = {
  name: string,
  title: string,
  /** from the fault until all is well again; rejects if it does not get well */
  act: (site: Site) => Promise<void>,
  /** of a deck to which it can happen */
  options?: SiteOptions,
  /** why it cannot happen here */
  skip?: string | false,
  /** nobody serves after it */
  isLast?: boolean,
  /** it takes something that does not come back, such as the history, or a part of it */
  isFinal?: boolean,
  /** it can strike at any moment, also in a rollout */
  isSudden?: boolean
}

const AUTOCANNON = createRequire(import.meta.url).resolve('autocannon')
const HOUR_MS = 3_600_000

export const FAULTS: readonly Fault[] = Object.freeze([{ name: 'deploy', title: 'rolling deploy',
  act: (site) => deploy(site) }, { name: 'restart', title: 'restart-all', act: (site) => site.rollout('restart') }, {
  name: 'scale-down',
  title: 'scale down',
  async act (site) {
    for (const workers of [4, 2, 1, WORKERS]) await site.scale(workers)
  }
}, { name: 'bad-deploy', title: 'bad deploy', async act (site) {
  await site.release({ isGood: false })
  await site.rollout('deploy', 'failed')
  await deploy(site)
} }, { name: 'recycle', title: 'recycle', async act (site) {
  await site.untilGone(await site.grow(), 'memory-limit')
  await site.untilReady()
} }, { name: 'kill-one', isSudden: true, title: 'SIGKILL of one worker', async act (site) {
  const [pid] = await site.workers()
  site.lose([pid])
  await site.untilGone(pid, 'killed')
  await site.untilReady()
} }, { name: 'kill-all', isSudden: true, title: 'SIGKILL of all workers', async act (site) {
  const pids = await site.workers()
  site.lose(pids)
  for (const pid of pids) await site.untilGone(pid, 'killed')
  await site.untilReady()
} }, { name: 'kill-everybody', title: 'SIGKILL of the master and all workers', async act (site) {
  const pids = await site.workers()
  await site.loseMaster(pids)
  for (const pid of pids) await site.untilGone(pid, 'killed')
  await site.untilReady()
} }, { name: 'hang', title: 'hung worker', isSudden: true, act: (site) => poison(site, '/hang', 'hung') }, {
  name: 'out-of-memory',
  title: 'heap out of memory',
  isSudden: true,
  act: (site) => poison(site, '/out-of-memory', 'out-of-memory')
}, { name: 'crash-loop', title: 'crash loop', async act (site) {
  const newest = await site.newestEvent()
  // One of two slots has more of them than it may. Whoever dies before it is ready has failed to boot.
  for (let count = 0; count < 5; count++) {
    await site.untilReady()
    await site.untilGone(await site.poison('/crash'), 'crash')
  }
  const [told] = await site.deck.history('type=worker.crash-looping&limit=1')
  const { workers } = await site.deck.status()
  if (!(told?.id > newest) && !workers.some(({ crashLooping }) => crashLooping))
    throw new Error('expected a crash loop, received none')
  // A release that was deployed a short while ago is taken back.
  await site.deck.untilStatus(({ rollout }) => rollout === null, 'the guard to have done its work')
  await site.untilReady()
} }, { name: 'master-kill', title: 'master SIGKILL', isSudden: true, act: loseMaster }, { name: 'master-stop',
  isSudden: true, title: 'master SIGSTOP', async act (site) {
  await site.freezeMaster()
  await site.untilReady()
} }, { name: 'keeper-kill', isFinal: true, title: 'keeper SIGKILL', async act (site) {
  process.kill(Number(site.deck.child.pid), 'SIGKILL')
  await site.deck.untilEvent(({ type }) => type === 'keeper.lost', 'the loss of the keeper to be told')
  await site.rollout('restart')
} }, { name: 'upgrade', title: 'upgrade', act: (site) => site.upgrade() }, { name: 'disk-full', title: 'disk full',
  skip: lacksSmallDisk, async act (site) {
  const newest = await site.newestEvent()
  site.disk?.fill()
  await goOn(site)
  site.disk?.free()
  await site.deck.untilEvent(({ type, id }) => type === 'history.recovered' && id > newest,
    'the history to be written again')
} }, { name: 'read-only', isFinal: true, title: 'data folder read-only', skip: lacksSmallDisk, async act (site) {
  const cover = site.disk?.cover(site.deck.folder)
  try {
    await goOn(site)
  } finally {
    cover?.uncover()
  }
  await goOn(site)
} }, { name: 'folder-removed', isFinal: true, title: 'data folder removed', async act (site) {
  rmSync(site.deck.folder, { recursive: true, maxRetries: 10 })
  await site.rollout('restart')
  await deploy(site)
  await loseMaster(site)
  await site.rollout('restart')
} }, { name: 'database-locked', title: 'database locked for 10 s', async act (site) {
  const db = openSqlite(path.join(site.deck.folder, 'history.db'))
  db.exec('BEGIN EXCLUSIVE')
  const unlocked = wait(10_000).then(() => {
    db.exec('ROLLBACK')
    db.close()
  })
  await goOn(site)
  await unlocked
} }, { name: 'database-garbage', isFinal: true, title: 'database overwritten with garbage', async act (site) {
  overwrite(path.join(site.deck.folder, 'history.db'))
  await goOn(site)
} }, { name: 'admin-flood', title: 'admin port flooded', async act (site) {
  const flood = spawn(process.execPath, [AUTOCANNON, '--connections', '200', '--duration', '8',
    `${site.deck.adminUrl}/healthz`], { stdio: 'ignore' })
  const flooded = once(flood, 'exit')
  await beside(connectSilently(site.deck.adminUrl, 300), () => site.rollout('restart'))
  await flooded
} }, { name: 'viewers', title: '300 viewers', async act (site) {
  await beside(watchLive(site.deck, 300), async () => {
    await site.rollout('restart')
    await deploy(site)
  })
} }, { name: 'worker-stop', isSudden: true, title: 'worker SIGSTOP', async act (site) {
  const [pid] = await site.workers()
  site.freeze(pid)
  await site.untilGone(pid, 'hung')
  await site.untilReady()
} }, { name: 'clock', title: 'clock set back and forth', async act (site) {
  site.setClock(2 * HOUR_MS)
  await site.rollout('restart')
  site.setClock(-2 * HOUR_MS)
  await loseMaster(site)
  site.setClock(0)
  await deploy(site)
} }, { name: 'descriptors', isFinal: true, title: 'descriptors exhausted',
  options: { launch: { through: ['/bin/sh', '-c', 'ulimit -n 256; exec "$@"', 'sh'] } }, async act (site) {
  await beside(connectSilently(site.deck.adminUrl, 300, { backAfterMs: 2000 }), () => goOn(site))
} }, { name: 'sigterm', title: 'SIGTERM of all', isFinal: true, isLast: true,
  act: (site) => site.signalAll('SIGTERM') }, { name: 'sigint', title: 'SIGINT of all', isFinal: true, isLast: true,
  act: (site) => site.signalAll('SIGINT') }])

/** Writes garbage over what a file begins with. */
export function overwrite (file: string) {
  const fd = openSync(file, 'r+')
  writeSync(fd, Buffer.alloc(1_000_000, 'garbage '))
  closeSync(fd)
}

/** What happens on any day, and what must go on whatever else does. */
async function goOn (site: Site) {
  await site.rollout('restart')
  await loseMaster(site)
  await deploy(site)
}

async function deploy (site: Site) {
  await site.release({ isGood: true })
  await site.rollout('deploy')
}

async function loseMaster (site: Site) {
  await site.loseMaster()
  await site.untilReady()
}

async function poison (site: Site, what: '/hang' | '/out-of-memory', cause: string) {
  await site.untilGone(await site.poison(what), cause)
  await site.untilReady()
}

async function beside (opening: Promise<{ close: () => void }>, act: () => Promise<void>) {
  const crowd = await opening
  try {
    await act()
  } finally {
    crowd.close()
  }
}

/** Connections that say nothing; one that is cut comes back. */
async function connectSilently (url: string, count: number, { backAfterMs = 50 }: { backAfterMs?: number } = {}) {
  const { hostname, port } = new URL(url)
  const open: Set<net.Socket> = new Set()
  let isOver = false
  for (let each = 0; each < count; each++) connect()
  await wait(200)
  return { close () {
    isOver = true
    for (const socket of open) socket.destroy()
  } }

  function connect () {
    const socket = net.connect({ host: hostname, port: Number(port) }).on('error', () => {})
    open.add(socket)
    socket.on('close', () => {
      open.delete(socket)
      // Each in its own time: they know nothing of each other.
      if (!isOver) setTimeout(connect, backAfterMs * (0.5 + Math.random()))
    })
  }
}

/** They come back as browsers do. */
async function watchLive ({ adminUrl, token }: Deck, count: number) {
  const viewers = Array.from({ length: count },
    () =>
      io(adminUrl, { transports: ['websocket'], extraHeaders: { Authorization: `Bearer ${token}` }, forceNew: true }))
  await Promise.all(viewers.map((viewer) =>
    new Promise((resolve) => {
      viewer.on('connect', () => resolve(viewer.emit('watch', '/')))
    })
  ))
  return { close () {
    for (const viewer of viewers) viewer.close()
  } }
}
