import { jetstream } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import type { TestContext } from 'node:test'
import type { History } from '../../db/history.ts'

/** The stream of the events of a fleet, read and written past all that the project has for it. */
export type Stored = { seq: number, subject: string, source: string, member: string, id: number, type: string }

const PATIENCE_MS = 90_000
const LOOK_AGAIN_MS = 50
const PAGE = 100

export async function openStream (t: Pick<TestContext, 'after'>,
  { url, fleet = 'test' }: { url: string, fleet?: string })
{
  const connection = await connect({ servers: url, maxReconnectAttempts: -1, reconnectTimeWait: 50 })
  t.after(() => connection.close())
  const js = jetstream(connection)
  const manager = await js.jetstreamManager(false)
  const name = `clusterdeck_${fleet}_events`

  return {
    manager,
    name,

    /** `subject`: below that of the fleet */
    put: (subject: string, data: string) => js.publish(`clusterdeck.${fleet}.${subject}`, data),

    all,

    async until (isSo: (stored: Stored[]) => boolean, what: string): Promise<Stored[]> {
      let stored: Stored[] = []
      await look(async () => isSo(stored = await all()), what)
      return stored
    }
  }

  /** `isSo`: what it throws, as while there is no server, is no answer */
  async function look (isSo: () => Promise<boolean>, what: string) {
    const until = performance.now() + PATIENCE_MS
    while (!await isSo().catch(() => false)) {
      if (performance.now() > until) throw new Error(`waited ${PATIENCE_MS} ms for ${what}`)
      await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS))
    }
  }

  /** Oldest first. */
  async function all (): Promise<Stored[]> {
    const { state } = await manager.streams.info(name)
    if (state.messages === 0) return []
    const consumer = await js.consumers.get(name)
    const stored = []
    for await (const message of await consumer.fetch({ max_messages: state.messages, expires: 5000 })) {
      const { source, member, event } = message.json<
        Pick<Stored, 'source' | 'member'> & { event: Pick<Stored, 'id' | 'type'> }
      >()
      stored.push({ seq: message.seq, subject: message.subject, source, member, id: event.id, type: event.type })
    }
    return stored
  }
}

/** All that a history tells, oldest first: one page of it is shorter where the machine is busy. */
export function recordedIn (history: Pick<History, 'outbox'>) {
  const recorded = history.outbox.after(0, PAGE)
  for (let page = recorded; page.length > 0;) {
    page = history.outbox.after(recorded[recorded.length - 1].id, PAGE)
    recorded.push(...page)
  }
  return recorded
}
