import { cpSync, rmSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { attempt } from '../../server/errors.ts'
import { startMember, type Member } from '../support/fleet.ts'
import { tempFolder } from '../support/folder.ts'
import { hammer } from '../support/load.ts'
import { createLink, startNatsCluster } from '../support/nats.ts'
import { until } from '../support/until.ts'
import type { Fleet } from '../../server/fleet/api-answers.ts'
import type { Deck, TestOwner } from '../support/deck.ts'

/**
 * Hosts of one fleet and their three servers, each of which can be taken away and given back. A host reaches the
 * servers by ways of its own.
 */
export type FleetSite = Awaited<ReturnType<typeof openFleetSite>>
export type Host = Awaited<ReturnType<typeof startHost>>

const FLAGS = ['--releases-mode', 'folder', '--rollout-min-ready-ms', '300']

export async function openFleetSite (t: TestOwner, { names }: { names: string[] }) {
  const nats = await startNatsCluster(t)
  const hosts = await Promise.all(names.map((name) => startHost(t, name, nats)))
  const site = {
    nats,
    hosts,
    host: (name: string) => hosts.find((host) => host.name === name) as Host,

    /** All servers at once, and what is done to their disks while they are down. */
    async restartEngine (toDisk: (folder: string) => void = () => {}, awayMs: number = 0) {
      await Promise.all(nats.servers.map((server) => server.kill(toDisk.length > 0 ? 'SIGTERM' : 'SIGKILL')))
      for (const { store } of nats.servers) toDisk(store)
      await wait(awayMs)
      await Promise.all(nats.servers.map((server) => server.start()))
    },

    copyDisks: () =>
      site.restartEngine((store) => {
        rmSync(backupOf(store), { recursive: true, force: true })
        cpSync(store, backupOf(store), { recursive: true })
      }),

    restore: () =>
      site.restartEngine((store) => {
        rmSync(store, { recursive: true, force: true })
        cpSync(backupOf(store), store, { recursive: true })
      }),

    wipe: () => site.restartEngine((store) => rmSync(store, { recursive: true, force: true })),

    /** Everybody is there, hears everybody, and is in no turn. */
    async untilWhole () {
      for (const host of hosts) {
        await host.untilFleet(
          ({ nats, problem, members }: Fleet) =>
            nats.isConnected && problem === null && members.length === names.length && members.every((each) =>
              !each.isSilent && each.turnOf === null
            ),
          'all to be there and in no turn'
        )
      }
    },

    /** @returns what failed */
    async close (): Promise<string[]> {
      return (await Promise.all(
        hosts.map(async (host) => (await host.endLoad()).map((failure) => `${host.name}: ${failure}`))
      )).flat()
    }
  }
  await site.untilWhole()
  return site
}

function backupOf (store: string) {
  return path.join(path.dirname(store), 'backup')
}

async function startHost (t: TestOwner, name: string, nats: Awaited<ReturnType<typeof startNatsCluster>>) {
  const root = tempFolder()
  const links = await Promise.all(nats.servers.map(({ port }) => createLink(t, { to: port })))
  const servers = links.map(({ url }) => url).join(',')
  const failures: string[] = []
  const start = async () => await startMember(t, { name, servers, flags: FLAGS, isApart: true, root }) as Member & Deck
  let deck = await start()
  let load = hammer(t, await deck.appUrl(), { connections: 2 })
  let good = 'v1'

  return {
    name,

    /** What a deploy finds from now on. `isBad`: it does not start. */
    put (version: string, { isBad }: { isBad: boolean }) {
      if (!isBad) good = version
      deck.put(version, { isBad })
    },

    get deck () {
      return deck
    },
    untilFleet: (isSo: (fleet: Fleet) => boolean, what: string) => deck.untilFleet(isSo, `${what}, as ${name} sees it`),

    cut () {
      for (const link of links) link.cut()
    },
    mend () {
      for (const link of links) link.mend()
    },
    /** `ms`: of each message, each way */
    slow (ms: number) {
      for (const link of links) link.slow(ms)
    },

    /** The master and its keeper. */
    signal (signal: NodeJS.Signals) {
      for (const pid of [deck.child.pid, deck.masterPid]) process.kill(pid as number, signal)
    },

    loseMaster: () => deck.loseMaster(),

    /** The whole machine, which starts what is good on its disk. */
    async crash (awayMs: number) {
      failures.push(...(await load.stop()).failures)
      const { workers } = await deck.status()
      for (const pid of [Number(deck.child.pid), deck.masterPid, ...workers.flatMap(({ pid }) => pid ?? [])]) kill(pid)
      await deck.exited
      await wait(awayMs)
      deck.put(good)
      deck = await start()
      load = hammer(t, await deck.appUrl(), { connections: 2 })
    },

    async endLoad (): Promise<string[]> {
      return [...failures, ...(await load.stop()).failures]
    }
  }
}

function kill (pid: number) {
  // A worker that its rollout has just ended.
  attempt(() => process.kill(pid, 'SIGKILL'))
}

/** `since`: ms since the epoch. Returns its own rollouts since then that were for the fleet. */
export async function ownRolloutsOf ({ name, deck }: Host, since: number) {
  const { body } = await deck.api('/rollouts?limit=20')
  const found = body.items.flatMap((each) => {
    const [, fleet] = /rollout (\d+) of the fleet/.exec(each.note ?? '') ?? []
    return fleet === undefined
      ? []
      : { ...each, name, fleet: Number(fleet), from: Date.parse(each.startedAt),
        to: Date.parse(each.finishedAt ?? each.startedAt) }
  })
  return found.filter(({ from }) => from >= since)
}

export async function untilAtRest (site: FleetSite) {
  await until(
    async () =>
      (await Promise.all(site.hosts.map(({ deck }) => deck.status()))).every(({ rollout }) =>
        rollout === null || rollout.done
      ),
    'own rollouts to end'
  )
}
