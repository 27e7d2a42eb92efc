import { cpSync, rmSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { startMember } from '../support/fleet.js'
import { tempFolder } from '../support/folder.js'
import { hammer } from '../support/load.js'
import { createLink, startNatsCluster } from '../support/nats.js'
import { until } from '../support/until.js'

/**
 * Hosts of one fleet and their three servers, each of which can be taken away and given back. A host reaches the servers by
 * ways of its own.
 * @typedef {Awaited<ReturnType<typeof openFleetSite>>} FleetSite
 * @typedef {Awaited<ReturnType<typeof startHost>>} Host
 * @typedef {import('../support/deck.js').TestOwner} TestOwner
 */

const FLAGS = ['--releases-mode', 'folder', '--rollout-min-ready-ms', '300']

/** @param {TestOwner} t @param {{ names: string[] }} options */
export async function openFleetSite (t, { names }) {
  const nats = await startNatsCluster(t)
  const hosts = await Promise.all(names.map((name) => startHost(t, name, nats)))
  const site = {
    nats,
    hosts,
    host: (/** @type {string} */ name) => /** @type {Host} */ (hosts.find((host) => host.name === name)),

    /** All servers at once, and what is done to their disks while they are down. @param {(folder: string) => void} [toDisk] @param {number} [awayMs] */
    async restartEngine (toDisk = () => {}, awayMs = 0) {
      await Promise.all(nats.servers.map((server) => server.kill(toDisk.length > 0 ? 'SIGTERM' : 'SIGKILL')))
      for (const { store } of nats.servers) toDisk(store)
      await wait(awayMs)
      await Promise.all(nats.servers.map((server) => server.start()))
    },

    copyDisks: () => site.restartEngine((store) => {
      rmSync(backupOf(store), { recursive: true, force: true })
      cpSync(store, backupOf(store), { recursive: true })
    }),

    restore: () => site.restartEngine((store) => {
      rmSync(store, { recursive: true, force: true })
      cpSync(backupOf(store), store, { recursive: true })
    }),

    wipe: () => site.restartEngine((store) => rmSync(store, { recursive: true, force: true })),

    /** Everybody is there, hears everybody, and is in no turn. */
    async untilWhole () {
      for (const host of hosts) {
        await host.untilFleet(({ nats, problem, members }) => nats.isConnected && problem === null && members.length === names.length && members.every((/** @type {any} */ each) => !each.isSilent && each.turnOf === null), 'all to be there and in no turn')
      }
    },

    /** @returns {Promise<string[]>} what failed */
    async close () {
      return (await Promise.all(hosts.map(async (host) => (await host.endLoad()).map((failure) => `${host.name}: ${failure}`)))).flat()
    }
  }
  await site.untilWhole()
  return site
}

/** @param {string} store */
function backupOf (store) {
  return path.join(path.dirname(store), 'backup')
}

/** @param {TestOwner} t @param {string} name @param {Awaited<ReturnType<typeof startNatsCluster>>} nats */
async function startHost (t, name, nats) {
  const root = tempFolder()
  const links = await Promise.all(nats.servers.map(({ port }) => createLink(t, { to: port })))
  const servers = links.map(({ url }) => url).join(',')
  /** @type {string[]} */
  const failures = []
  const start = async () => /** @type {import('../support/fleet.js').Member & import('../support/deck.js').Deck} */ (await startMember(t, { name, servers, flags: FLAGS, isApart: true, root }))
  let deck = await start()
  let load = hammer(t, await deck.appUrl(), { connections: 2 })
  let good = 'v1'

  return {
    name,

    /** What a deploy finds from now on. @param {string} version @param {{ isBad: boolean }} options `isBad`: it does not start */
    put (version, { isBad }) {
      if (!isBad) good = version
      deck.put(version, { isBad })
    },

    get deck () { return deck },
    untilFleet: (/** @type {(fleet: any) => boolean} */ isSo, /** @type {string} */ what) => deck.untilFleet(isSo, `${what}, as ${name} sees it`),

    cut () { for (const link of links) link.cut() },
    mend () { for (const link of links) link.mend() },
    /** @param {number} ms  of each message, each way */
    slow (ms) { for (const link of links) link.slow(ms) },

    /** The master and its keeper. @param {NodeJS.Signals} signal */
    signal (signal) {
      for (const pid of [deck.child.pid, deck.masterPid]) process.kill(/** @type {number} */ (pid), signal)
    },

    loseMaster: () => deck.loseMaster(),

    /** The whole machine, which starts what is good on its disk. @param {number} awayMs */
    async crash (awayMs) {
      failures.push(...(await load.stop()).failures)
      const { workers } = await deck.status()
      for (const pid of [deck.child.pid, deck.masterPid, ...workers.map((/** @type {any} */ worker) => worker.pid)]) kill(pid)
      await deck.exited
      await wait(awayMs)
      deck.put(good)
      deck = await start()
      load = hammer(t, await deck.appUrl(), { connections: 2 })
    },

    /** @returns {Promise<string[]>} */
    async endLoad () {
      return [...failures, ...(await load.stop()).failures]
    }
  }
}

/** @param {number} pid */
function kill (pid) {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // A worker that its rollout has just ended.
  }
}

/** @param {Host} host @param {number} since  ms since the epoch @returns {Promise<any[]>} its own rollouts since then that were for the fleet */
export async function ownRolloutsOf ({ name, deck }, since) {
  const { body } = await deck.api('/rollouts?limit=20')
  const found = body.items.flatMap((/** @type {any} */ each) => {
    const [, fleet] = /rollout (\d+) of the fleet/.exec(each.note ?? '') ?? []
    return fleet === undefined ? [] : { ...each, name, fleet: Number(fleet), from: Date.parse(each.startedAt), to: Date.parse(each.finishedAt ?? each.startedAt) }
  })
  return found.filter((/** @type {any} */ { from }) => from >= since)
}

/** @param {FleetSite} site */
export async function untilAtRest (site) {
  await until(async () => (await Promise.all(site.hosts.map(({ deck }) => deck.status()))).every(({ rollout }) => rollout === null || rollout.done), 'own rollouts to end')
}
