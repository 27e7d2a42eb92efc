import { waitAtMost } from '../system/wait-at-most.js'
import { MAX_MEMBERS } from './document.js'
import { SILENT_AFTER_MS } from './nats-connection.js'
import { readMemberStatus } from './member-status.js'

/**
 * Who is there. Each member says how it is, every few seconds and when that changes; what the others say is heard only while
 * somebody wants to know. Ages count from when a word came, by this machine's clock, and before that by NATS's: no
 * host's clock is compared with another's.
 * @typedef {ReturnType<typeof createPresence>} Presence
 * @typedef {import('./member-status.js').Word} Word
 * @typedef {Word & { isSilent: boolean, ageMs: number, isOwn: boolean }} Member `ageMs`: of its last word
 */

const EVERY_MS = 5000
/** A flood of changes is told as one. */
const SOON_MS = 250
/** For the last word of a master that ends. */
const LAST_WORD_MS = 1000
/** With 500 members each word goes to all who listen. */
const LISTEN_MS = 60_000
const DEAF_AFTER_MS = 12_000
/** All that there is, after a connection. */
const HEAR_WITHIN_MS = 30_000
/** Of a name whose deck is silent: its machine may come back. */
const FREE_AFTER_MS = 24 * 60 * 60_000
/** How long two masters of one data folder write over each other's words before one gives way: at an upgrade there are two for a moment. */
const RIVALS_MS = 20_000

/**
 * @param {object} parts
 * @param {import('./nats-connection.js').Connection} parts.nats
 * @param {() => Word} parts.describe
 * @param {(problem: string | null) => void} [parts.onName]  another one has this name; null: no more
 * @param {() => number} [parts.now]  monotonic, ms
 * @param {Pick<typeof globalThis, 'setTimeout' | 'clearTimeout' | 'setInterval' | 'clearInterval'>} [parts.timers]
 */
export function createPresence ({ nats, describe, onName = () => {}, now = () => performance.now(), timers = globalThis }) {
  /** @type {Map<string, { word: Word, at: number }>} `at`: when it was said, by this machine's clock */
  let known = new Map()
  let revision = 0
  /** What is being said. @type {Promise<void> | null} */
  let telling = null
  let isBehind = false
  let isClosing = false
  let heardAt = -Infinity
  let listenUntil = -Infinity
  /** @type {{ words: { stop: () => void }, caughtUp: Promise<boolean> } | null} */
  let ear = null
  /** @type {string | null} */
  let taken = null
  /** Of a copy of this data folder, and since when each writes over the other's words. @type {{ boot: string, since: number } | null} */
  let rival = null
  /** Why its last word did not come in. @type {string | null} */
  let untold = null
  /** @type {any} */
  let soon = null
  const every = timers.setInterval(sendHeartbeat, EVERY_MS)
  every?.unref?.()
  nats.use(announceAndListen)

  return {
    /**
     * Those that are there, and those that have gone without a word, as they are known at the moment; from now on, and for a
     * while, it hears of all.
     * @returns {Member[]} by name
     */
    list () {
      watchMembers()
      return listMembers()
    },

    /** One of the others, as it is known at the moment. @param {string} name @returns {Member | null} */
    find (name) {
      watchMembers()
      const found = known.get(name)
      return found ? otherOf(found) : null
    },

    /** The same, of all. @returns {Promise<{ members: Member[], isComplete: boolean }>} `isComplete`: false where it has not heard of all, as without NATS */
    async all () {
      await waitAtMost(watchMembers(), HEAR_WITHIN_MS)
      return { members: listMembers(), isComplete: nats.state.isConnected && ear !== null && await Promise.race([ear.caughtUp, false]) }
    },

    /** Why others do not hear of it, though NATS is there. @returns {string | null} */
    get problem () { return nats.state.isConnected ? untold : null },

    /** That something has changed. */
    tellSoon () {
      soon ??= timers.setTimeout(() => {
        soon = null
        publishStatus()
      }, SOON_MS)
      soon?.unref?.()
    },

    /** Says that it leaves. */
    async close () {
      timers.clearInterval(every)
      timers.clearTimeout(soon)
      isClosing = true
      stopWatching()
      await waitAtMost(deleteOwnStatus(), LAST_WORD_MS)
    }
  }

  async function deleteOwnStatus () {
    // A word that is on its way would come in after it.
    await telling
    if (revision > 0) await nats.call(({ members }) => members.delete(describe().member, { previousSeq: revision }))
  }

  function listMembers () {
    const own = describe()
    const others = Array.from(known.values()).filter(({ word }) => word.member !== own.member)
    const all = [
      { ...own, isOwn: true, isSilent: !nats.state.isConnected || taken !== null, ageMs: 0 },
      ...others.map(otherOf)
    ]
    return all.sort((one, other) => one.member < other.member ? -1 : 1)
  }

  /** @param {{ word: Word, at: number }} heard @returns {Member} */
  function otherOf ({ word, at }) {
    return { ...word, isOwn: false, isSilent: now() - at > SILENT_AFTER_MS, ageMs: Math.max(0, Math.round(now() - at)) }
  }

  async function announceAndListen () {
    stopWatching()
    await publishStatus()
    if (now() < listenUntil) await watchMembers()
  }

  function sendHeartbeat () {
    if (ear && now() > listenUntil) stopWatching()
    // It hears its own words too, unless NATS has lost it.
    if (ear && now() - heardAt > DEAF_AFTER_MS) {
      stopWatching()
      watchMembers()
    }
    publishStatus()
  }

  async function watchMembers () {
    listenUntil = now() + LISTEN_MS
    if (!ear) {
      const opened = await nats.attempt(({ members }) => members.watch())
      if (opened.is === 'away') return
      if (ear) opened.value.stop()
      else ear = { words: opened.value, caughtUp: readStatuses(opened.value) }
      heardAt = now()
    }
    await ear?.caughtUp
  }

  function stopWatching () {
    ear?.words.stop()
    ear = null
  }

  /** @param {AsyncIterable<import('@nats-io/kv').KvWatchEntry>} words @returns {Promise<boolean>} once all that is known has come; false: it has not */
  function readStatuses (words) {
    return new Promise((resolve) => {
      const patience = timers.setTimeout(() => resolve(false), HEAR_WITHIN_MS)
      patience?.unref?.()
      /** @type {{ word: Word, created: number }[]} */
      const first = []
      const takeInitialStatuses = () => {
        timers.clearTimeout(patience)
        if (first.length > 0) known = new Map()
        const engineNow = Math.max(...first.map(({ created }) => created))
        for (const { word, created } of first.splice(0)) known.set(word.member, { word, at: now() - (engineNow - created) })
        resolve(true)
      }
      const readEntries = async () => {
        let isFirst = true
        for await (const entry of words) {
          const word = entry.operation === 'PUT' ? readMemberStatus(entry) : null
          if (entry.isUpdate) heardAt = now()
          if (isFirst) {
            if (word && first.length < MAX_MEMBERS) first.push({ word, created: entry.created.getTime() })
            if (entry.isUpdate || entry.delta === 0) {
              isFirst = false
              takeInitialStatuses()
            }
          } else {
            if (word && (known.size < MAX_MEMBERS || known.has(entry.key))) known.set(entry.key, { word, at: now() })
            else if (entry.operation !== 'PUT') known.delete(entry.key)
          }
        }
      }
      readEntries().catch(() => {}).finally(() => resolve(false))
    })
  }

  async function publishStatus () {
    isBehind = telling !== null
    if (telling || isClosing) return
    telling = publishOnce().finally(() => { telling = null })
    await telling
    if (isBehind) await publishStatus()
  }

  async function publishOnce () {
    const word = describe()
    const told = await nats.write('members', word.member, word, revision)
    untold = told.is === 'away' ? told.reason : null
    if (told.is === 'written') {
      revision = told.revision
      reportNameProblem(null)
    } else if (told.is === 'refused') {
      await whoseName(word)
    }
  }

  /** It is that of a master of this data folder before this one, has gone, or is somebody else's. @param {Word} word */
  async function whoseName (word) {
    const found = await nats.call(({ members }) => members.get(word.member))
    if (found.is === 'away') return
    const entry = found.value
    const other = entry && entry.operation === 'PUT' ? readMemberStatus(entry) : null
    const wasWritten = revision > 0
    revision = 0
    if (other && other.home !== word.home && !await hasGone(other, FREE_AFTER_MS)) {
      return reportNameProblem(`the name ${word.member} is that of a deck on ${other.host} (${other.app}, ${other.home}): fleet.member gives this one another`)
    }
    if (other && await givesWay(other, { word, wasWritten })) {
      return reportNameProblem(`the name ${word.member} is that of a deck on ${other.host} (${other.app}) with a copy of this data folder: fleet.member gives this one another`)
    }
    const told = await nats.write('members', word.member, word, entry && other ? entry.revision : 0)
    if (told.is !== 'written') return
    revision = told.revision
    reportNameProblem(null)
  }

  /** @param {Word} other @param {number} afterMs */
  async function hasGone ({ member }, afterMs) {
    await watchMembers()
    const one = known.get(member)
    return one !== undefined && now() - one.at > afterMs
  }

  /** One of the two goes on. @param {Word} other @param {{ word: Word, wasWritten: boolean }} own @returns {Promise<boolean>} */
  async function givesWay (other, { word, wasWritten }) {
    if (other.boot === word.boot || (rival?.boot !== other.boot && !wasWritten)) return false
    if (rival?.boot !== other.boot) rival = { boot: other.boot, since: now() }
    return now() - rival.since >= RIVALS_MS && other.boot < word.boot && !await hasGone(other, SILENT_AFTER_MS)
  }

  /** @param {string | null} problem */
  function reportNameProblem (problem) {
    if (problem === taken) return
    taken = problem
    onName(problem)
  }
}
