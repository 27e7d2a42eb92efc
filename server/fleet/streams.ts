import type { JetStreamManager } from '@nats-io/jetstream'
import type { NatsConnection } from '@nats-io/transport-node'

const REPLICAS = 3
/** The code of JetStream for "stream not found". */
const NO_STREAM = 10059

export async function streamExists (manager: JetStreamManager, stream: string) {
  try {
    await manager.streams.info(stream)
    return true
  } catch (error) {
    if (isMissing(error)) return false
    throw error
  }
}

/** @returns a number, if JetStream has refused something */
export function natsCode (error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}

/** Tells whether it says that a stream does not exist */
export function isMissing (error: unknown): boolean {
  return natsCode(error) === NO_STREAM || (error instanceof Error && 'status' in error && error.status === 404)
}

/** Keeps a stream on three servers if the cluster has as many, also a stream that was made when there were fewer. */
export async function makeReplicated<T> (
  { connection, manager }: { connection: NatsConnection, manager: JetStreamManager },
  stream: string,
  make: (replicas: number) => Promise<T>
) {
  if (connection.info?.cluster === undefined) return make(1)
  const made = await make(REPLICAS).catch(() => make(1))
  const { config } = await manager.streams.info(stream)
  // It fails while servers are missing; the next connection tries again.
  if (config.num_replicas < REPLICAS) await manager.streams.update(stream, { num_replicas: REPLICAS }).catch(() => {})
  return made
}
