/** @typedef {import('@nats-io/jetstream').JetStreamManager} JetStreamManager */

const REPLICAS = 3
/** The code of JetStream for "stream not found". */
const NO_STREAM = 10059

/** @param {JetStreamManager} manager @param {string} stream */
export async function streamExists (manager, stream) {
  try {
    await manager.streams.info(stream)
    return true
  } catch (error) {
    if (isMissing(error)) return false
    throw error
  }
}

/** @param {unknown} error @returns {unknown} a number, if JetStream has refused something */
export function natsCode (error) {
  return error instanceof Error && 'code' in error ? error.code : undefined
}

/** @param {unknown} error @returns {boolean} whether it says that a stream does not exist */
export function isMissing (error) {
  return natsCode(error) === NO_STREAM || (error instanceof Error && 'status' in error && error.status === 404)
}

/**
 * Keeps a stream on three servers if the cluster has as many, also a stream that was made when there were fewer.
 * @template T @param {{ connection: import('@nats-io/transport-node').NatsConnection, manager: JetStreamManager }} nats
 * @param {string} stream @param {(replicas: number) => Promise<T>} make
 */
export async function makeReplicated ({ connection, manager }, stream, make) {
  if (connection.info?.cluster === undefined) return make(1)
  const made = await make(REPLICAS).catch(() => make(1))
  const { config } = await manager.streams.info(stream)
  // It fails while servers are missing; the next connection tries again.
  if (config.num_replicas < REPLICAS) await manager.streams.update(stream, { num_replicas: REPLICAS }).catch(() => {})
  return made
}
