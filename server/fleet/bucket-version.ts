import type { Connection } from './nats-connection.ts'

export type BucketVersion = ReturnType<typeof createBucketVersion>

/** Announcements can be lost, so the version of the bucket is looked at as well. */
const LOOK_EVERY_MS = 10_000

/**
 * The version of the bucket in which the rollouts of the fleet are, which changes with each write. It is asked for once
 * for all apps of this host.
 */
export function createBucketVersion (
  { nats, timers = globalThis }: { nats: Pick<Connection, 'call'>,
    timers?: Pick<typeof globalThis, 'setInterval' | 'clearInterval'> }
) {
  const followers: Set<(version: number | null) => void> = new Set()
  const timer = timers.setInterval(look, LOOK_EVERY_MS)
  timer?.unref?.()

  return {
    /**
     * @param follower null: NATS is out of reach
     * @returns ends it
     */
    follow (follower: (version: number | null) => void): () => void {
      followers.add(follower)
      return () => followers.delete(follower)
    },

    close () {
      timers.clearInterval(timer)
    }
  }

  async function look () {
    if (followers.size === 0) return
    const found = await nats.call(async ({ manager, names }) =>
      (await manager.streams.info(`KV_${names.state}`)).state.last_seq
    )
    for (const follower of followers) follower(found.is === 'done' ? found.value : null)
  }
}
