/** @typedef {import('../deck.js').Deck['webhooks']} Webhooks */

/** The elements of the page that change, by id; each is the partial of the same name. */
export const WEBHOOKS_FRAGMENTS = Object.freeze(['webhooks'])

/** @type {Readonly<Record<ReturnType<Webhooks['list']>[number]['deliveries'][number]['state'], { label: string, tone: import('../events/kinds.js').Tone }>>} */
const STATES = Object.freeze({
  pending: { label: 'Pending', tone: 'info' },
  delivered: { label: 'Delivered', tone: 'ok' },
  failed: { label: 'Failed', tone: 'bad' }
})

/** @param {{ webhooks: Pick<Webhooks, 'list'>, now: number }} parts */
export function webhooksModel ({ webhooks, now }) {
  return {
    now,
    webhooks: webhooks.list().map(({ deliveries, ...webhook }) => ({
      ...webhook,
      deliveries: deliveries.map((delivery) => ({ ...delivery, badge: STATES[delivery.state], canRetry: delivery.state === 'failed' }))
    }))
  }
}
