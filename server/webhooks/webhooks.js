import { randomUUID } from 'node:crypto'
import os from 'node:os'
import { ALERTS } from '../events/kinds.js'
import { createHook } from './hook.js'

/** @typedef {import('../events/stream.js').DeckEvent} DeckEvent */
/** @typedef {{ url: string, events?: string[], secret: string }} Target */

const DRAIN_MS = 2000
const MAX_TEXT = 16_384

/**
 * Tells others of events by webhook, from a queue of its own: whoever publishes an event never waits for it.
 * @param {object} parts
 * @param {readonly Target[]} parts.targets
 * @param {import('../events/stream.js').EventStream} parts.events
 * @param {Record<string, unknown>} parts.deck who tells: goes into every message
 * @param {{ warn: (fields: any, text: string) => void }} parts.log
 * @param {Partial<Parameters<typeof createHook>[1]>} [options]
 */
export function createWebhooks ({ targets, events, deck, log }, options = {}) {
  const hooks = targets.map((target) => {
    const matches = matcher(target.events ?? ALERTS)
    // The rest of the address is as good as a password with many services.
    const to = new URL(target.url).origin
    let isFailing = false
    const hook = createHook(target, {
      ...options,
      // Said once, until it works again.
      onDelivered () { isFailing = false },
      onFailed (reason) {
        log.warn({ to, reason }, 'a webhook was not delivered')
        if (isFailing) return
        isFailing = true
        events.publish({ type: 'notify.failed', actor: 'system', message: `the webhook to ${to} was not delivered: ${reason}` })
      }
    })
    return {
      close: hook.close,
      /** @param {DeckEvent} event */
      offer (event) {
        if (!matches(event)) return
        hook.push({ id: `msg_${randomUUID()}`, body: bodyOf(event, deck), what: event.type })
      }
    }
  })
  const unsubscribe = events.subscribe((event) => {
    // A failure told to the one that fails would go on for ever.
    if (event.type.startsWith('notify.')) return
    for (const hook of hooks) hook.offer(event)
  })

  return {
    /** Nothing is told from now on; what waits is tried once more. */
    async close () {
      unsubscribe()
      await Promise.all(hooks.map(({ close }) => close(DRAIN_MS)))
    }
  }
}

/** @param {readonly string[]} patterns `worker.exited`, `worker.*`, `worker.exited:hung`, `*` */
function matcher (patterns) {
  const expressions = patterns.map((pattern) => new RegExp(`^${pattern.replace(/[.]/g, '\\.').replace(/\*/g, '.*')}$`))
  return (/** @type {DeckEvent} */ { type, cause }) => expressions.some((one) => one.test(type) || (cause !== null && one.test(`${type}:${cause}`)))
}

/** @param {DeckEvent} event @param {Record<string, unknown>} deck */
function bodyOf (event, deck) {
  const whole = JSON.stringify({ event, deck: { host: os.hostname(), ...deck } })
  // A rollout's detail can be long; who wants it all asks for the event by its id.
  return whole.length <= MAX_TEXT ? whole : JSON.stringify({ event: { ...event, message: event.message?.slice(0, 2000) ?? null, detail: null }, deck: { host: os.hostname(), ...deck } })
}
