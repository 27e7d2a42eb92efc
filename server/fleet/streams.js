/**
 * Streams of NATS: whether they are there, and how often each is kept.
 * @typedef {import('@nats-io/jetstream').JetStreamManager} JetStreamManager
 */

const REPLICAS = 3
/** Of 10059: stream not found. */
const NO_STREAM = 10059

/** @param {JetStreamManager} manager @param {string} stream */
export async function streamExists (manager, stream) {
  try {
    await manager.streams.info(stream)
    return true
  } catch (/** @type {any} */ error) {
    if (isMissing(error)) return false
    throw error
  }
}

/** @param {any} error @returns {boolean} whether it says that a stream is not there */
export function isMissing (error) {
  return (error?.code ?? error?.api_error?.err_code) === NO_STREAM || error?.status === 404
}

/**
 * Three of each where there are as many servers, also of what was made when there were fewer.
 * @template T @param {{ connection: import('@nats-io/transport-node').NatsConnection, manager: JetStreamManager }} nats @param {string} stream @param {(replicas: number) => Promise<T>} make
 */
export async function makeReplicated ({ connection, manager }, stream, make) {
  if (connection.info?.cluster === undefined) return make(1)
  const made = await make(REPLICAS).catch(() => make(1))
  const { config } = await manager.streams.info(stream)
  // As soon as enough servers are there: the next connection tries again.
  if (config.num_replicas < REPLICAS) await manager.streams.update(stream, { num_replicas: REPLICAS }).catch(() => {})
  return made
}
