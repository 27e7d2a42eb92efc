import { formatDuration } from '../../public/format.ts'
import { didYouMean } from '../config/nearest.ts'
import { DeckError } from '../errors.ts'
import { waitAtMost } from '../system/wait-at-most.ts'
import { MAX_MEMBERS } from './document.ts'
import { membersUnknown, SILENT_AFTER_MS, valueOrThrow, type Connection } from './nats-connection.ts'
import { readMemberStatus, type AppStatus, type MemberStatus } from './member-status.ts'
import type { KvWatchEntry } from '@nats-io/kv'

/**
 * Reports the status of this host and its apps, every few seconds and when it changes, and reads the reports of the
 * others while somebody wants to know them. Ages count from the arrival of a report, by this machine's clock, and
 * before that by the clock of NATS, so the clocks of two hosts are never compared.
 */
export type Presence = ReturnType<typeof createPresence>
/** `ageMs`: of its last report */
type Heard = { isSilent: boolean, ageMs: number, isOwn: boolean }
/** with all its apps */
export type Host =
  & MemberStatus
  & Heard
/** with one of its apps */
export type Member =
  & Omit<MemberStatus, 'apps'>
  & AppStatus
  & Heard
/** `at`: when it came, by this machine's clock */
type Report = { status: MemberStatus, at: number }

const EVERY_MS = 5000
/** Many changes within this time are one report. */
const SOON_MS = 250
/** A master that ends waits so long for NATS to take that it leaves. */
const LEAVE_MS = 1000
/** It listens no longer than it has to: with 500 members each report goes to all that listen. */
const LISTEN_MS = 60_000
const DEAF_AFTER_MS = 12_000
const READ_ALL_MS = 30_000
/** The name of a silent member stays taken for this time, as its machine may come back. */
const FREE_AFTER_MS = 24 * 60 * 60_000
/**
 * Two masters of one data folder are normal for a moment at an upgrade. After this time one of them gives up the name.
 */
const RIVALS_MS = 20_000

export function createPresence (
  { nats, describe, onName = () => {}, now = () => performance.now(), timers = globalThis }: {
    nats: Connection,
    describe: () => MemberStatus,
    /** another member has this name; null: no longer */
    onName?: (problem: string | null) => void,
    /** monotonic, ms */
    now?: () => number,
    timers?: Pick<typeof globalThis, 'setTimeout' | 'clearTimeout' | 'setInterval' | 'clearInterval'>
  }
) {
  let known: Map<string, Report> = new Map()
  let revision = 0
  let publishing: Promise<void> | null = null
  let isBehind = false
  let isClosing = false
  let heardAt = -Infinity
  let listenUntil = -Infinity
  let watch: { reports: { stop: () => void }, caughtUp: Promise<boolean> } | null = null
  let nameProblem: string | null = null
  /** Another master of this data folder or a copy of it, and since when both report under one name. */
  let rival: { boot: string, since: number } | null = null
  /** Why NATS did not take the last report. */
  let problem: string | null = null
  let soon: NodeJS.Timeout | undefined
  const every = timers.setInterval(sendHeartbeat, EVERY_MS)
  every?.unref?.()
  nats.use(announceAndListen)

  return {
    /**
     * All members that are known at the moment, also the silent ones. From now on, for a while, it reads every report.
     * @returns by name
     */
    list (): Host[] {
      watchMembers()
      return listMembers()
    },

    /** One of the others, as it is known at the moment. */
    find (name: string): Host | null {
      watchMembers()
      const found = known.get(name)
      return found ? otherOf(found) : null
    },

    all: readAll,

    /** The same, but unless somebody wants to know them anyhow it does not listen to later reports. */
    async glance () {
      const before = listenUntil
      const found = await readAll()
      listenUntil = Math.max(before, now())
      return found
    },

    /** Whether reports come here, and be it its own. */
    get isHearing () {
      return now() - heardAt <= DEAF_AFTER_MS
    },

    /** Why the others do not see this host although NATS is in reach. */
    get problem (): string | null {
      return nats.state.isConnected ? problem : null
    },

    tellSoon () {
      soon ??= timers.setTimeout(() => {
        soon = undefined
        publishStatus()
      }, SOON_MS)
      soon?.unref?.()
    },

    /**
     * Removes the report of a host that will not come back. If it does, it reports anew.
     * @returns how long it has been silent, in ms
     * @throws {DeckError} not-found, not-possible: it reports; fleet-away
     */
    async forget (name: string): Promise<number> {
      const { members, isComplete } = await readAll()
      if (!isComplete) throw membersUnknown(nats.state)
      const found = members.find(({ member }) => member === name)
      if (!found) throw noMember(name)
      if (found.isOwn || !found.isSilent) throw stillThere(found)
      const entry = valueOrThrow(await nats.call((open) => open.members.get(name)))
      if (!entry) throw noMember(name)
      // A report that comes meanwhile has another revision.
      valueOrThrow(await nats.call((open) => open.members.delete(name, { previousSeq: entry.revision })))
      known.delete(name)
      return found.ageMs
    },

    async close () {
      timers.clearInterval(every)
      timers.clearTimeout(soon)
      isClosing = true
      stopWatching()
      await waitAtMost(deleteOwnStatus(), LEAVE_MS)
    }
  }

  /** @returns `isComplete`: false if not all reports could be read */
  async function readAll (): Promise<{ members: Host[], isComplete: boolean }> {
    await waitAtMost(watchMembers(), READ_ALL_MS)
    return { members: listMembers(),
      isComplete: nats.state.isConnected && watch !== null && await Promise.race([watch.caughtUp, false]) }
  }

  async function deleteOwnStatus () {
    // A report that is on its way would arrive after the deletion.
    await publishing
    if (revision > 0) await nats.call(({ members }) => members.delete(describe().member, { previousSeq: revision }))
  }

  function listMembers () {
    const own = describe()
    const others = Array.from(known.values()).filter(({ status }) => status.member !== own.member)
    const all = [{ ...own, isOwn: true, isSilent: !nats.state.isConnected || nameProblem !== null, ageMs: 0 },
      ...others.map(otherOf)]
    return all.sort((one, other) => one.member < other.member ? -1 : 1)
  }

  function otherOf ({ status, at }: Report): Host {
    return { ...status, isOwn: false, isSilent: now() - at > SILENT_AFTER_MS,
      ageMs: Math.max(0, Math.round(now() - at)) }
  }

  async function announceAndListen () {
    stopWatching()
    await publishStatus()
    if (now() < listenUntil) await watchMembers()
  }

  function sendHeartbeat () {
    if (watch && now() > listenUntil) stopWatching()
    // It reads its own reports too, so silence means that NATS has lost the subscription.
    if (watch && now() - heardAt > DEAF_AFTER_MS) {
      stopWatching()
      watchMembers()
    }
    publishStatus()
  }

  async function watchMembers () {
    listenUntil = now() + LISTEN_MS
    if (!watch) {
      const opened = await nats.attempt(({ members }) => members.watch())
      if (opened.is === 'away') return
      if (watch) opened.value.stop()
      else watch = { reports: opened.value, caughtUp: readStatuses(opened.value) }
      heardAt = now()
    }
    await watch?.caughtUp
  }

  function stopWatching () {
    watch?.reports.stop()
    watch = null
  }

  /** @returns once all known reports have come; false: they have not */
  function readStatuses (reports: AsyncIterable<KvWatchEntry>): Promise<boolean> {
    return new Promise((resolve) => {
      const patience = timers.setTimeout(() => resolve(false), READ_ALL_MS)
      patience?.unref?.()
      const first: { status: MemberStatus, created: number }[] = []
      const takeInitialStatuses = () => {
        timers.clearTimeout(patience)
        if (first.length > 0) known = new Map()
        const natsNow = Math.max(...first.map(({ created }) => created))
        for (const { status, created } of first.splice(0))
          known.set(status.member, { status, at: now() - (natsNow - created) })
        resolve(true)
      }
      const readEntries = async () => {
        let isFirst = true
        for await (const entry of reports) {
          const status = entry.operation === 'PUT' ? readMemberStatus(entry) : null
          if (entry.isUpdate) heardAt = now()
          if (isFirst) {
            if (status && first.length < MAX_MEMBERS) first.push({ status, created: entry.created.getTime() })
            if (entry.isUpdate || entry.delta === 0) {
              isFirst = false
              takeInitialStatuses()
            }
          } else {
            if (status && (known.size < MAX_MEMBERS || known.has(entry.key)))
              known.set(entry.key, { status, at: now() })
            else if (entry.operation !== 'PUT') known.delete(entry.key)
          }
        }
      }
      readEntries().catch(() => {}).finally(() => resolve(false))
    })
  }

  async function publishStatus () {
    isBehind = publishing !== null
    if (publishing || isClosing) return
    publishing = publishOnce().finally(() => {
      publishing = null
    })
    await publishing
    if (isBehind) await publishStatus()
  }

  async function publishOnce () {
    const status = describe()
    const told = await nats.write('members', status.member, status, revision)
    problem = told.is === 'away' ? told.reason : null
    if (told.is === 'written') {
      revision = told.revision
      reportNameProblem(null)
    } else if (told.is === 'refused') {
      await claimName(status)
    }
  }

  /** The name is that of an earlier master of this data folder, of a member that has gone, or of another one. */
  async function claimName (status: MemberStatus) {
    const found = await nats.call(({ members }) => members.get(status.member))
    if (found.is === 'away') return
    const entry = found.value
    const other = entry && entry.operation === 'PUT' ? readMemberStatus(entry) : null
    const wasWritten = revision > 0
    revision = 0
    if (other && other.home !== status.home && !await hasGone(other, FREE_AFTER_MS)) {
      return reportNameProblem(nameTaken(status.member, `${other.host} (${appsText(other)}, ${other.home})`))
    }
    if (other && await givesWay(other, { status, wasWritten })) {
      return reportNameProblem(
        nameTaken(status.member, `${other.host} (${appsText(other)}) with a copy of this data folder`)
      )
    }
    const told = await nats.write('members', status.member, status, entry && other ? entry.revision : 0)
    if (told.is !== 'written') return
    revision = told.revision
    reportNameProblem(null)
  }

  async function hasGone ({ member }: MemberStatus, afterMs: number) {
    await watchMembers()
    const one = known.get(member)
    return one !== undefined && now() - one.at > afterMs
  }

  /** Of two masters the one with the lower id keeps the name. */
  async function givesWay (other: MemberStatus, { status, wasWritten }: { status: MemberStatus, wasWritten: boolean }) {
    if (other.boot === status.boot || (rival?.boot !== other.boot && !wasWritten)) return false
    if (rival?.boot !== other.boot) rival = { boot: other.boot, since: now() }
    return now() - rival.since >= RIVALS_MS && other.boot < status.boot && !await hasGone(other, SILENT_AFTER_MS)
  }

  function reportNameProblem (next: string | null) {
    if (next === nameProblem) return
    nameProblem = next
    onName(next)
  }
}

/** `names`: of those that it has, as far as they are known */
export function noMember (name: string, names: string[] = []): DeckError {
  return new DeckError('not-found',
    `The fleet has no member ${JSON.stringify(name.slice(0, 100))}${didYouMean(name, names)}`)
}

function stillThere ({ member, isOwn, ageMs }: Host): DeckError {
  const heard = isOwn ? 'this is the host that you ask' : `it has reported ${formatDuration(ageMs)} ago`
  return new DeckError('not-possible',
    `${member}: expected a host that is silent, but ${heard}. One that is stopped leaves the fleet by itself`)
}

function nameTaken (member: string, where: string) {
  return `the name ${member} is taken by ${where}: give this host another by fleet.member`
}

function appsText ({ apps }: MemberStatus) {
  return apps.length === 0 ? 'no apps' : apps.map(({ app }) => app).join(', ')
}

/** Each member that has an app, with what it says of that one. */
export function membersOf (hosts: Host[], app: string): Member[] {
  return hosts.flatMap(({ apps, ...host }) =>
    apps.filter((each) => each.app === app).slice(0, 1).map((own) => ({ ...host, ...own, url: own.url ?? host.url }))
  )
}
