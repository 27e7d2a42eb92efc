import { jetstream } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'

/**
 * The stream of the events of a fleet, read and written past all that the project has for it.
 * @typedef {{ seq: number, subject: string, source: string, member: string, id: number, type: string }} Stored
 */

const PATIENCE_MS = 90_000
const LOOK_AGAIN_MS = 50
const PAGE = 100

/** @param {Pick<import('node:test').TestContext, 'after'>} t @param {{ url: string, fleet?: string }} where */
export async function openStream (t, { url, fleet = 'test' }) {
  const connection = await connect({ servers: url, maxReconnectAttempts: -1, reconnectTimeWait: 50 })
  t.after(() => connection.close())
  const js = jetstream(connection)
  const manager = await js.jetstreamManager(false)
  const name = `clusterdeck_${fleet}_events`

  return {
    manager,
    name,

    /** @param {string} subject below that of the fleet @param {string} data */
    put: (subject, data) => js.publish(`clusterdeck.${fleet}.${subject}`, data),

    all,

    /** @param {number} count @returns {Promise<Stored[]>} once there are so many */
    async untilCount (count) {
      await look(async () => (await manager.streams.info(name)).state.messages >= count, `${count} events`)
      return all()
    },

    /** @param {(stored: Stored[]) => boolean} isSo @param {string} what @returns {Promise<Stored[]>} */
    async until (isSo, what) {
      /** @type {Stored[]} */
      let stored = []
      await look(async () => isSo(stored = await all()), what)
      return stored
    }
  }

  /** @param {() => Promise<boolean>} isSo  what it throws, as while there is no server, is no answer @param {string} what */
  async function look (isSo, what) {
    const until = performance.now() + PATIENCE_MS
    while (!await isSo().catch(() => false)) {
      if (performance.now() > until) throw new Error(`waited ${PATIENCE_MS} ms for ${what}`)
      await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS))
    }
  }

  /** Oldest first. @returns {Promise<Stored[]>} */
  async function all () {
    const { state } = await manager.streams.info(name)
    if (state.messages === 0) return []
    const consumer = await js.consumers.get(name)
    const stored = []
    for await (const message of await consumer.fetch({ max_messages: state.messages, expires: 5000 })) {
      const { source, member, event } = /** @type {any} */ (message.json())
      stored.push({ seq: message.seq, subject: message.subject, source, member, id: event.id, type: event.type })
    }
    return stored
  }
}

/** All that a history tells, oldest first: one page of it is shorter where the machine is busy. @param {Pick<import('../../db/history.js').History, 'outbox'>} history */
export function recordedIn (history) {
  const recorded = history.outbox.after(0, PAGE)
  for (let page = recorded; page.length > 0;) {
    page = history.outbox.after(recorded[recorded.length - 1].id, PAGE)
    recorded.push(...page)
  }
  return recorded
}
