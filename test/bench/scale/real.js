import { setTimeout as wait } from 'node:timers/promises'
import { startDeck } from '../../support/deck.js'
import { cpuMs, pssMegabytes } from '../../support/process-figures.js'
import { placeApps, smallApps } from '../host/apps.js'
import { WAYS } from '../host/ways.js'

/**
 * What real processes cost, which no simulation tells.
 * @typedef {import('../../support/deck.js').TestOwner} TestOwner
 * @typedef {Record<string, number>} Figures  of all together
 */

const SETTLE_MS = 10_000
const MANY_MS = '300000'

/** At rest, of keeper and master together unless the name says otherwise. @type {Readonly<Record<'worker' | 'app', { title: string, measure: (n: number, owner: TestOwner, seconds: number) => Promise<Figures> }>>} */
export const REAL = Object.freeze({
  worker: { title: 'workers of one app', measure: measureWorkers },
  app: { title: 'apps of a host, one worker each', measure: measureApps }
})

/** @param {number} n @param {TestOwner} owner @param {number} seconds @returns {Promise<Figures>} */
async function measureWorkers (n, owner, seconds) {
  const startedAt = performance.now()
  const deck = await startDeck(owner, 'hello.js', { workers: n, flags: ['--ready-timeout-ms', MANY_MS] })
  while ((await deck.status()).readyWorkers < n) await wait(100)
  const readyMs = performance.now() - startedAt
  await wait(SETTLE_MS)
  const { workers } = await deck.status()
  const managers = [Number(deck.child.pid), deck.masterPid]
  const figures = {
    'MB of keeper and master': pssMegabytes(managers),
    'MB of the workers': pssMegabytes(workers.map((/** @type {any} */ { pid }) => pid)),
    'CPU ms in a second': await cpuMsPerSecond(managers, seconds),
    'ms until all are ready': readyMs
  }
  const killedAt = performance.now()
  await deck.loseMaster()
  return { ...figures, 'ms until the next master has all of them, after a SIGKILL': performance.now() - killedAt, 'CPU ms of that master by then': cpuMs([deck.masterPid]) }
}

/** @param {number} n @param {TestOwner} owner @param {number} seconds @returns {Promise<Figures>} */
async function measureApps (n, owner, seconds) {
  const apps = await placeApps(smallApps(n))
  const running = await WAYS.host.start(owner, apps, {})
  await wait(SETTLE_MS)
  const figures = { 'MB of keeper and master': pssMegabytes(running.managers()), 'CPU ms in a second': await cpuMsPerSecond(running.managers(), seconds) }
  const { firstMs, allMs } = await /** @type {NonNullable<typeof running.lose>} */ (running.lose)()
  return { ...figures, 'ms until the next master answers for the first, after a SIGKILL': firstMs, 'ms until it answers for all': allMs }
}

/** @param {number[]} pids @param {number} seconds */
async function cpuMsPerSecond (pids, seconds) {
  const before = cpuMs(pids)
  await wait(1000 * seconds)
  return (cpuMs(pids) - before) / seconds
}
