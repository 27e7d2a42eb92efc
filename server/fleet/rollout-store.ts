import { setImmediate as nextTurn } from 'node:timers/promises'
import { z } from 'zod'
import { MEMBER_NAME } from '../config/member-name.ts'
import { DeckError } from '../errors.ts'
import { appKey } from './app-key.ts'
import { documentOf, MAX_ID, type FleetRollout } from './document.ts'
import { valueOrThrow, outOfReach, type Connection } from './nats-connection.ts'
import { parseUntrusted } from './untrusted-json.ts'
import { dueOf } from './turn.ts'
import type { Scope } from './app-fleet.ts'
import type { BucketVersion } from './bucket-version.ts'

/**
 * Keeps the rollout of one app over the fleet, and those before it, in NATS. It writes by compare-and-set and announces
 * each change to all in a few bytes, so that only the members that it concerns read the document.
 */
export type RolloutStore = ReturnType<typeof createRolloutStore>
/** `revision`: 0 if there is none */
type Entry = { document: FleetRollout | null, revision: number }
export type Announcement = z.infer<typeof ANNOUNCEMENT>

const KEPT = 50
const TRIES = 5
/** An announcement has the names of all members that may be due. */
const MAX_ANNOUNCEMENT_BYTES = 256 * 1024

const ANNOUNCEMENT = z.object({ id: z.int().min(1).max(MAX_ID), revision: z.int().min(1), state: z.string().max(20),
  due: z.array(z.string().regex(MEMBER_NAME)).max(2000).describe('those who may have something to do now') })

export function createRolloutStore ({ nats, app, scope, bucketVersion }: {
  nats: Connection,
  app: string,
  /** of what the connection calls */
  scope: Scope,
  bucketVersion: Pick<BucketVersion, 'follow'>
}) {
  const key = `rollout.${appKey(app)}`
  const past = `past.${appKey(app)}`

  return {
    read: readRollout,
    write: writeRollout,

    /**
     * @param onChange for each change that any member writes
     * @param onOpen after each connection, since announcements before it are lost
     * @returns ends it
     */
    follow (onChange: (announcement: Announcement) => void, onOpen: () => unknown): () => void {
      return nats.use(async ({ connection, names }) => {
        const heard = connection.subscribe(`${names.subject}.${key}`, { callback: scope.bind((error, message) => {
          const announcement = error || message.data.length > MAX_ANNOUNCEMENT_BYTES
            ? null
            : parseUntrusted(ANNOUNCEMENT, () => message.json())
          if (announcement) onChange(announcement)
        }) })
        await scope.run(onOpen)
        return () => heard.unsubscribe()
      })
    },

    /**
     * @param onVersion now and then; null: NATS is out of reach
     * @returns ends it
     */
    followVersion: (onVersion: (version: number | null) => void): () => void =>
      bucketVersion.follow(scope.bind(onVersion)),

    /**
     * If another member is faster, it reads the document and tries again. `to`: may throw, and then nothing is written.
     * @throws {DeckError} fleet-away, rollout-state
     */
    async change (
      to: (document: FleetRollout | null) => FleetRollout
    ): Promise<Entry & { before: FleetRollout | null, document: FleetRollout }> {
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

    /** Rollouts before the present one. @returns newest first, none if NATS is out of reach */
    async past (): Promise<FleetRollout[]> {
      const found = await nats.attempt(async ({ state }) => {
        const ids = []
        for await (const key of await state.keys(`${past}.*`)) ids.push(Number(key.slice(past.length + 1)))
        // Keys without a number are ignored.
        const newest = ids.filter(Number.isSafeInteger).sort((one, other) => other - one).slice(0, KEPT)
        return Promise.all(newest.map((id) => state.get(`${past}.${id}`)))
      })
      const rollouts: FleetRollout[] = []
      for (const entry of found.is === 'done' ? found.value : []) {
        // With many members it takes milliseconds to read one.
        await nextTurn()
        const document = entry && documentOf(entry, app)
        if (document) rollouts.push(document)
      }
      return rollouts.sort((one, other) => other.id - one.id)
    }
  }

  function readRollout (): Promise<{ is: 'done', value: Entry } | { is: 'away', reason: string }> {
    return nats.call(async ({ state }) => {
      const entry = await state.get(key)
      return { document: entry && documentOf(entry, app), revision: entry?.revision ?? 0 }
    })
  }

  /** `revision`: that it was made from */
  async function writeRollout (document: FleetRollout, revision: number) {
    const told = await nats.write('state', key, document, revision)
    if (told.is === 'written')
      nats.say(key, { id: document.id, revision: told.revision, state: document.state, due: dueOf(document) })
    return told
  }

  async function archiveRollout (document: FleetRollout) {
    await nats.attempt(async ({ state }) => {
      await state.put(`${past}.${document.id}`, JSON.stringify(document))
      if (document.id > KEPT) await state.purge(`${past}.${document.id - KEPT}`)
    })
  }
}
