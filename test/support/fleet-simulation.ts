import { errorCode } from '../../server/errors.ts'
import { createMember, NO_MEMORY, reduceMember } from '../../server/fleet/member.ts'
import type { FleetRollout } from '../../server/fleet/document.ts'
import { giveUp, startRollout, steerRollout, takeTurn } from '../../server/fleet/rollout.ts'
import type { Command, Input, Memory } from '../../server/fleet/member.ts'

/**
 * Members of a fleet and a NATS server, without processes, network or time of their own: each step is one thing that
 * happens to one of them. What really runs is kept apart from what they believe.
 */
export type Fleet = ReturnType<typeof createFleet>

const DEADLINE_MS = 600_000

/** `loses`: whether the answer to a write is lost */
export function createFleet ({ members, loses = () => false }: { members: string[], loses?: () => boolean }) {
  let at = 0
  let boots = 0
  let uids = 0
  /** all that was ever written, the newest last */
  let stored: { document: FleetRollout, revision: number }[] = []
  let revision = 0
  const hosts = new Map(members.map((member) => [member, createHost(member)]))
  const begun: { member: string, fleet: string, way: 'forward' | 'back', batch: number }[] = []
  /** what must never be */
  const broken: string[] = []
  let isAway = false
  const DO = { write, remember, begin: start, 'roll-back': start, abort, read () {}, wake () {} }

  return {
    hosts,
    begun,
    broken,
    get document () {
      return stored.at(-1)?.document ?? null
    },
    get revision () {
      return revision
    },

    pass (ms: number) {
      at += ms
    },

    /** `member`: hears of the newest that is written */
    deliver,

    deliverToAll () {
      for (const member of members) deliver(member)
    },

    /** It hears of an older one: messages that were under way for long. */
    deliverLate (member: string, back: number) {
      const host = get(member)
      const old = stored.at(-1 - back)
      if (old && !host.hasLost && !host.isStopped && !isAway && !host.isCut && old.revision > host.heard)
        give(host, { type: 'seen', ...old })
    },

    /** `member`: looks again, as after a wait */
    look (member: string) {
      const host = get(member)
      if (!host.isStopped) give(host, { type: 'look' })
    },

    /** What it has just written says that its turn is under way, and it has not heard of that yet. */
    take (member: string) {
      const host = get(member)
      const { document } = stored.at(-1) as { document: FleetRollout }
      store(takeTurn(document, member, { at: iso(), boot: host.state.boot, from: host.release }))
    },

    /** Its own rollout ends. */
    endOwn (member: string, isGood: boolean) {
      const host = get(member)
      if (host.isStopped || !host.running) return
      const { way } = host.running
      host.running = null
      if (isGood) host.release = way === 'forward' ? 'new' : 'old'
      give(host, { type: 'ended',
        result: isGood
          ? { state: way === 'forward' ? 'succeeded' : 'reverted', to: host.release, reason: null }
          : { state: 'failed', to: null, reason: 'a worker crashed' } })
    },

    /** What it has deployed did not last: it goes back by itself. */
    undo (member: string) {
      const host = get(member)
      if (host.isStopped || host.running || host.release === 'old') return
      const { release } = host
      host.release = 'old'
      give(host, { type: 'undone', release, reason: 'crashes again and again' })
    },

    /** What it has deployed has a fault that no release had before. */
    fault (member: string, fingerprint: string) {
      const host = get(member)
      if (host.isStopped) return
      give(host, { type: 'crashed', release: host.release,
        crash: { group: 1, fingerprint, text: `Error: ${fingerprint}` } })
    },

    /** Its master and its keeper are gone at once, and come back: the workers' rollout ends with them. */
    crash (member: string) {
      const host = get(member)
      host.running = null
      host.isStopped = false
      host.state = createMember({ member, boot: `boot ${++boots}`, memory: host.memory })
    },

    stop (member: string) {
      get(member).isStopped = true
    },

    goOn (member: string) {
      get(member).isStopped = false
    },

    cut (member: string, isCut: boolean) {
      const host = get(member)
      host.isCut = isCut
      if (isCut && !host.isStopped) give(host, { type: 'away' })
    },

    nats (away: boolean) {
      isAway = away
      if (away) { for (const host of hosts.values()) if (!host.isStopped) give(host, { type: 'away' }) }
    },

    /**
     * As out of a backup: whoever is there connects anew and reads. Of whoever is not, nobody can know. `back`: how
     * many of the last changes are forgotten.
     */
    restore (back: number) {
      stored = stored.slice(0, Math.max(0, stored.length - back))
      revision = stored.at(-1)?.revision ?? 0
      for (const host of hosts.values()) {
        const isThere = !isAway && !isSilent(host)
        if (isThere) {
          give(host, { type: 'away' })
          give(host, { type: 'seen', document: stored.at(-1)?.document ?? null, revision })
        } else {
          host.hasLost = true
          if (host.running) host.running.isGivenUp = true
        }
      }
    },

    /** An operator on one of them. */
    operate (order: 'begin' | 'pause' | 'resume' | 'abort',
      { batch = 1, onFailure = 'hold' }: { batch?: number, onFailure?: 'hold' | 'rollback' } = {})
    {
      if (isAway) return false
      const by = { at: iso(), actor: 'ada' }
      const now = stored.at(-1)
      const silent = members.filter((member) => isSilent(get(member)))
      try {
        const highest = Math.max(now?.document.id ?? 0, ...Array.from(hosts.values(), ({ memory }) => memory.rollout))
        // As their words say; whatever the document knows it has to say itself.
        if (order !== 'pause' &&
          Array.from(hosts.values()).some((host) =>
            host.running && host.running.fleet !== now?.document.uid && !isSilent(host)
          )) return false
        if (order === 'begin') {
          const batches = Array.from({ length: Math.ceil(members.length / batch) }, (_, index) =>
            members.slice(index * batch, (index + 1) * batch))
          store(
            startRollout(now?.document ?? null, { ...by, id: highest + 1, uid: `uid ${++uids}`, app: 'shop',
              kind: 'deploy', source: {}, batches, pauseMs: 1000, deadlineMs: DEADLINE_MS, onFailure, absent: [],
              note: null }, silent)
          )
          giveUpOn(silent)
        } else if (now) {
          const isGivingUp = order === 'resume' || now.document.state === 'held'
          store(giveUp(steerRollout(now.document, order, by), isGivingUp ? silent : [], by))
          if (isGivingUp) giveUpOn(silent)
        }
        return true
      } catch (error) {
        if (['rollout-running', 'rollout-ended', 'rollout-state'].includes(String(errorCode(error)))) return false
        throw error
      }
    }
  }

  function deliver (member: string) {
    const host = get(member)
    if (host.isStopped || isAway || host.isCut) return
    if (host.hasLost) give(host, { type: 'away' })
    host.hasLost = false
    give(host, { type: 'seen', document: stored.at(-1)?.document ?? null, revision: stored.at(-1)?.revision ?? 0 })
  }

  function createHost (member: string) {
    return {
      member,
      memory: NO_MEMORY,
      /** what its master knows */
      state: createMember({ member, boot: `boot ${++boots}` }),
      /** what it really does */
      running: null as { fleet: string, way: 'forward' | 'back', id: number, isGivenUp: boolean } | null,
      release: 'old',
      rollouts: 0,
      heard: 0,
      isStopped: false,
      isCut: false,
      /**
       * its connection was to a NATS server that is no more, and it has not noticed: nothing that it writes comes in
       */
      hasLost: false
    }
  }

  function get (member: string): ReturnType<typeof createHost> {
    return hosts.get(member)!
  }

  function isSilent ({ isStopped, isCut }: ReturnType<typeof createHost>) {
    return isStopped || isCut
  }

  /** A person goes on without them, whatever they do. */
  function giveUpOn (silent: string[]) {
    for (const member of silent) {
      const { running } = get(member)
      if (running) running.isGivenUp = true
    }
  }

  function iso () {
    return new Date(at).toISOString()
  }

  function give (host: ReturnType<typeof createHost>, input: Input) {
    if (input.type === 'seen') host.heard = input.revision
    const { state, commands } = reduceMember(host.state, input, { at, iso: iso(), release: host.release })
    host.state = state
    for (const command of commands) DO[command.type](host, command as never)
  }

  function store (document: FleetRollout) {
    stored.push({ document: structuredClone(document), revision: ++revision })
  }

  function write (host: ReturnType<typeof createHost>, command: { document: FleetRollout, revision: number }) {
    if (isAway || host.isCut || host.hasLost) return give(host, { type: 'away' })
    if (command.revision !== revision) return give(host, { type: 'refused' })
    store(command.document)
    // The answer may be lost on the way.
    if (loses()) return give(host, { type: 'refused' })
    return give(host, { type: 'written', document: structuredClone(command.document), revision })
  }

  function remember (host: ReturnType<typeof createHost>, { memory }: { memory: Memory }) {
    host.memory = structuredClone(memory)
  }

  function start (host: ReturnType<typeof createHost>, { type, document }: Command & { type: 'begin' | 'roll-back' }) {
    const way = type === 'begin' ? 'forward' : 'back'
    if (host.running) broken.push(`${host.member} runs two rollouts at once`)
    if (begun.some((each) => each.member === host.member && each.fleet === document.uid && each.way === way))
      broken.push(`${host.member} begins rollout ${document.id} ${way} twice`)
    const batch = document.batches.findIndex((members) => members.includes(host.member))
    begun.push({ member: host.member, fleet: document.uid, way, batch })
    host.running = { fleet: document.uid, way, id: ++host.rollouts, isGivenUp: false }
    const together = Array.from(hosts.values()).filter(({ running }) => running && !running.isGivenUp)
    const isTogether = way === 'forward'
      ? together.every(({ member }) => document.batches[batch].includes(member))
      : together.length === 1
    if (!isTogether)
      broken.push(
        `${together.map(({ member, running }) => `${member} ${running?.way}`).join(', ')} are in their turns at once`
      )
    give(host, { type: 'began', rollout: host.running.id })
  }

  function abort (host: ReturnType<typeof createHost>) {
    if (!host.running) return
    host.running = null
    give(host, { type: 'ended', result: { state: 'reverted', to: host.release, reason: null } })
  }
}
