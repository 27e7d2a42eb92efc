import { setTimeout as wait } from 'node:timers/promises'
import { FIXTURES, startDeck, type TestOwner } from '../../support/deck.ts'
import { freePort } from '../../support/ports.ts'
import { cpuMs, pssMegabytes } from '../../support/process-figures.ts'
import { openUser } from '../../support/user.ts'

/** What real processes cost, which no simulation tells. */
/** of all together */
type Figures = Record<string, number>

const SETTLE_MS = 10_000
const MANY_MS = '300000'

/** At rest, of keeper and master together unless the name says otherwise. */
export const REAL: Readonly<
  Record<'worker' | 'app',
    { title: string, measure: (n: number, owner: TestOwner, seconds: number) => Promise<Figures> }>
> = Object.freeze({ worker: { title: 'workers of one app', measure: measureWorkers },
  app: { title: 'apps of a host, one worker each', measure: measureApps } })

async function measureWorkers (n: number, owner: TestOwner, seconds: number): Promise<Figures> {
  const startedAt = performance.now()
  const deck = await startDeck(owner, 'hello.js', { workers: n, flags: ['--ready-timeout-ms', MANY_MS] })
  while ((await deck.status()).readyWorkers < n) await wait(100)
  const readyMs = performance.now() - startedAt
  await wait(SETTLE_MS)
  const { workers } = await deck.status()
  const managers = [Number(deck.child.pid), deck.masterPid]
  const figures = { 'MB of keeper and master': pssMegabytes(managers),
    'MB of the workers': pssMegabytes(workers.map(({ pid }) => Number(pid))),
    'CPU ms in a second': await cpuMsPerSecond(managers, seconds), 'ms until all are ready': readyMs }
  const killedAt = performance.now()
  await deck.loseMaster()
  return { ...figures, 'ms until the next master has all of them, after a SIGKILL': performance.now() - killedAt,
    'CPU ms of that master by then': cpuMs([deck.masterPid]) }
}

async function measureApps (n: number, owner: TestOwner, seconds: number): Promise<Figures> {
  const user = openUser(owner)
  const names = Array.from({ length: n }, (_, index) => `app-${index + 1}`)
  const app = async () => ({ entry: `${FIXTURES}listens-on-port.js`, workers: 1,
    env: { PORT: String(await freePort()) } })
  const apps = Object.fromEntries(await Promise.all(names.map(async (name) => [name, await app()])))
  const cwd = user.folder('apps', { admin: { port: 0 }, apps })
  await user.startHost()
  for (const name of names) await user.add(cwd, name)
  await wait(SETTLE_MS)
  const figures = { 'MB of keeper and master': pssMegabytes(user.managers()),
    'CPU ms in a second': await cpuMsPerSecond(user.managers(), seconds) }
  const decks = user.decks()
  const killedAt = performance.now()
  let firstMs = 0
  process.kill(decks[0].master.pid, 'SIGKILL')
  await user.untilNextMaster(decks, () => {
    firstMs = performance.now() - killedAt
  })
  return { ...figures, 'ms until the next master answers for the first, after a SIGKILL': firstMs,
    'ms until it answers for all': performance.now() - killedAt }
}

async function cpuMsPerSecond (pids: number[], seconds: number) {
  const before = cpuMs(pids)
  await wait(1000 * seconds)
  return (cpuMs(pids) - before) / seconds
}
