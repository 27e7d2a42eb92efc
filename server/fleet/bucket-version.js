/** @typedef {ReturnType<typeof createBucketVersion>} BucketVersion */

/** Announcements can be lost, so the version of the bucket is looked at as well. */
const LOOK_EVERY_MS = 10_000

/**
 * The version of the bucket in which the rollouts of the fleet are, which changes with each write. It is asked for once for all apps of
 * this host.
 * @param {object} parts
 * @param {Pick<import('./nats-connection.js').Connection, 'call'>} parts.nats
 * @param {Pick<typeof globalThis, 'setInterval' | 'clearInterval'>} [parts.timers]
 */
export function createBucketVersion ({ nats, timers = globalThis }) {
  /** @type {Set<(version: number | null) => void>} */
  const followers = new Set()
  const timer = timers.setInterval(look, LOOK_EVERY_MS)
  timer?.unref?.()

  return {
    /** @param {(version: number | null) => void} follower  null: NATS is out of reach @returns {() => void} ends it */
    follow (follower) {
      followers.add(follower)
      return () => followers.delete(follower)
    },

    close () { timers.clearInterval(timer) }
  }

  async function look () {
    if (followers.size === 0) return
    const found = await nats.call(async ({ manager, names }) => (await manager.streams.info(`KV_${names.state}`)).state.last_seq)
    for (const follower of followers) follower(found.is === 'done' ? found.value : null)
  }
}
