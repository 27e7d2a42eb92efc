import { setImmediate as nextTurn } from 'node:timers/promises'
import { z } from 'zod'
import { MEMBER_NAME } from '../config/member-name.js'
import { DeckError } from '../errors.js'
import { documentOf } from './document.js'
import { valueOrThrow, outOfReach } from './nats-connection.js'
import { parseUntrusted } from './untrusted-json.js'
import { MAX_ID } from './rollout.js'
import { dueOf } from './turn.js'

/**
 * Keeps the rollout of the fleet, and those before it, in NATS. It writes by compare-and-set and announces each change to all
 * in a few bytes, so that only the members that it concerns read the document.
 * @typedef {ReturnType<typeof createRolloutStore>} RolloutStore
 * @typedef {import('./rollout.js').FleetRollout} FleetRollout
 * @typedef {{ document: FleetRollout | null, revision: number }} Entry `revision`: 0 if there is none
 * @typedef {z.infer<typeof ANNOUNCEMENT>} Announcement
 */

const KEY = 'rollout'
const PAST = 'past'
const KEPT = 50
const TRIES = 5
/** With the names of all members that may be due. */
const MAX_ANNOUNCEMENT_BYTES = 256 * 1024

const ANNOUNCEMENT = z.object({
  id: z.int().min(1).max(MAX_ID),
  revision: z.int().min(1),
  state: z.string().max(20),
  due: z.array(z.string().regex(MEMBER_NAME)).max(2000).describe('those who may have something to do now')
})

/** @param {{ nats: import('./nats-connection.js').Connection }} parts */
export function createRolloutStore ({ nats }) {
  return {
    read: readRollout,
    write: writeRollout,

    /**
     * @param {(announcement: Announcement) => void} onChange  for each change that any member writes
     * @param {() => unknown} onOpen  after each connection, since announcements before it are lost
     */
    follow (onChange, onOpen) {
      nats.use(async ({ connection, names }) => {
        const heard = connection.subscribe(`${names.subject}.rollout`, {
          callback (error, message) {
            const announcement = error || message.data.length > MAX_ANNOUNCEMENT_BYTES ? null : parseUntrusted(ANNOUNCEMENT, () => message.json())
            if (announcement) onChange(announcement)
          }
        })
        await onOpen()
        return () => heard.unsubscribe()
      })
    },

    /** @returns {Promise<number | null>} a number that changes with each write, null: NATS is out of reach */
    async version () {
      const found = await nats.call(async ({ manager, names }) => (await manager.streams.info(`KV_${names.state}`)).state.last_seq)
      return found.is === 'done' ? found.value : null
    },

    /**
     * If another member is faster, it reads the document and tries again.
     * @param {(document: FleetRollout | null) => FleetRollout} to  may throw, and then nothing is written
     * @returns {Promise<Entry & { before: FleetRollout | null, document: FleetRollout }>}
     * @throws {DeckError} fleet-away, rollout-state
     */
    async change (to) {
      for (let tries = 1; tries <= TRIES; tries++) {
        const found = valueOrThrow(await readRollout())
        const document = to(found.document)
        const told = await writeRollout(document, found.revision)
        if (told.is === 'away') throw outOfReach(told.reason)
        if (told.is === 'refused') continue
        if (found.document && found.document.id !== document.id) await archiveRollout(found.document)
        return { before: found.document, document, revision: told.revision }
      }
      throw new DeckError('rollout-state', 'Other members keep changing the rollout of the fleet: try again')
    },

    /** Rollouts before the present one. @returns {Promise<FleetRollout[]>} newest first, none if NATS is out of reach */
    async past () {
      const found = await nats.attempt(async ({ state }) => {
        const ids = []
        for await (const key of await state.keys(`${PAST}.*`)) ids.push(Number(key.slice(PAST.length + 1)))
        // Keys without a number are ignored.
        const newest = ids.filter(Number.isSafeInteger).sort((one, other) => other - one).slice(0, KEPT)
        return Promise.all(newest.map((id) => state.get(`${PAST}.${id}`)))
      })
      /** @type {FleetRollout[]} */
      const past = []
      for (const entry of found.is === 'done' ? found.value : []) {
        // With many members it takes milliseconds to read one.
        await nextTurn()
        const document = entry && documentOf(entry)
        if (document) past.push(document)
      }
      return past.sort((one, other) => other.id - one.id)
    }
  }

  /** @returns {Promise<{ is: 'done', value: Entry } | { is: 'away', reason: string }>} */
  function readRollout () {
    return nats.call(async ({ state }) => {
      const entry = await state.get(KEY)
      return { document: entry && documentOf(entry), revision: entry?.revision ?? 0 }
    })
  }

  /** @param {FleetRollout} document @param {number} revision  that it was made from */
  async function writeRollout (document, revision) {
    const told = await nats.write('state', KEY, document, revision)
    if (told.is === 'written') nats.say('rollout', { id: document.id, revision: told.revision, state: document.state, due: dueOf(document) })
    return told
  }

  /** @param {FleetRollout} document */
  async function archiveRollout (document) {
    await nats.attempt(async ({ state }) => {
      await state.put(`${PAST}.${document.id}`, JSON.stringify(document))
      if (document.id > KEPT) await state.purge(`${PAST}.${document.id - KEPT}`)
    })
  }
}
