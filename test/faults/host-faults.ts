import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { overwrite } from './faults.ts'
import { VICTIM, type HostSite } from './host-site.ts'
import { lacksSmallDisk } from '../support/small-disk.ts'
import { until } from '../support/until.ts'

/** What happens to one app of a host, or to the host. */
export type HostFault = {
  name: string,
  title: string,
  /** until it has been seen to happen; rejects if it has not, or if it does not get well */
  act: (site: HostSite) => Promise<void>,
  /** why it cannot happen here */
  skip?: string | false,
  /** all apps have to go on, and the event loop is another process's afterwards */
  isOfHost?: boolean,
  /** all may refuse connections for a moment: see limits of the manual */
  mayRefuse?: boolean
}

const GOES_ON_MS = 10_000

export const HOST_FAULTS: readonly HostFault[] = Object.freeze([{ name: 'nothing', title: 'nothing, for comparison',
  act: () => wait(GOES_ON_MS) }, { name: 'history-damaged', title: 'history overwritten with garbage',
  async act (site) {
    const { dataDir } = site.user.deck(VICTIM)
    for (const file of ['history.db', 'history.db-wal']) overwrite(path.join(dataDir, file))
    await site.rollout(VICTIM, 'restart')
    // Its pages are in memory until it is opened again.
    await site.stop(VICTIM)
    await site.start(VICTIM)
    await site.untilReady(VICTIM)
    if (!readdirSync(dataDir).some((name) => name.includes('.damaged-')))
      throw new Error('expected the damaged history to be moved aside')
  } }, { name: 'folder-full', title: 'data folder full', skip: lacksSmallDisk, async act (site) {
  site.disk?.fill()
  await site.rollout(VICTIM, 'restart')
  await until(async () => (await site.ask(VICTIM, '/status')).body.history.problem !== null, 'the full disk to be told')
  await wait(GOES_ON_MS / 2)
  site.disk?.free()
  await site.untilEvent(VICTIM, 'history.recovered', 'the history to be written again')
} }, { name: 'config-broken', title: 'a deploy whose configuration does not parse', async act (site) {
  const text = readFileSync(site.configFile, 'utf8')
  writeFileSync(site.configFile, text.slice(0, -10))
  const refused = await site.rollout(VICTIM, 'deploy')
  writeFileSync(site.configFile, text)
  if (refused < 400) throw new Error(`expected a refusal, received ${refused}`)
  const taken = await site.rollout(VICTIM, 'deploy')
  if (taken !== 202) throw new Error(`the deploy after it: expected 202, received ${taken}`)
} }, { name: 'log-flood', title: '10,000 log lines a second',
  act: (site) => beside(site, 'flood', () => wait(GOES_ON_MS)) }, { name: 'crash-loop', title: 'a crash loop',
  act: (site) =>
    beside(site, 'loop', async () => {
      await site.untilEvent('loop', 'worker.crash-looping', 'the crash loop to be told')
      await wait(GOES_ON_MS)
    }) }, { name: 'folder-removed', title: 'data folder removed', async act (site) {
  site.removeData()
  await site.rollout(VICTIM, 'restart')
  await site.untilReady(VICTIM)
} }, { name: 'hung', title: 'both workers hung', async act (site) {
  const pids = [await site.hang(), await site.hang()]
  await until(async () => {
    const { body } = await site.ask(VICTIM, '/events?type=worker.exited&limit=10')
    return pids.every((pid) =>
      body.items.some((event: { pid: number, cause: string }) => event.pid === pid && event.cause === 'hung')
    )
  }, 'the hung workers to be ended')
  await site.untilReady(VICTIM)
} }, { name: 'master-kill', title: 'master SIGKILL', isOfHost: true, act: (site) => site.harmMaster('SIGKILL') }, {
  name: 'master-stop',
  title: 'master SIGSTOP',
  isOfHost: true,
  act: (site) => site.harmMaster('SIGSTOP')
}, { name: 'upgrade', title: 'upgrade', isOfHost: true, act: (site) => site.upgrade() }, { name: 'keeper-and-master',
  title: 'keeper and master SIGKILL, then the command of the unit', isOfHost: true, mayRefuse: true,
  act: (site) => startAnew(site, () => site.kill(site.user.managers())) }, { name: 'reboot',
  title: 'everything SIGKILL, then the command of the unit', isOfHost: true, async act (site) {
  await site.silence()
  await startAnew(site, () => site.kill(site.user.processes()))
} }])

/** What was stopped stays so. */
async function startAnew (site: HostSite, kill: () => void) {
  await site.start('flood')
  await site.stop('flood')
  const before = await site.list()
  if (!before.includes('flood stopped')) throw new Error(`expected flood to be stopped, received ${before}`)
  kill()
  await site.startHost()
  await site.untilAllReady()
  const after = await site.list()
  if (after !== before) throw new Error(`expected the list ${before}, received ${after}`)
}

/** `name`: of an app that runs meanwhile */
async function beside (site: HostSite, name: string, act: () => Promise<void>) {
  await site.start(name)
  try {
    await act()
  } finally {
    await site.stop(name)
  }
}
