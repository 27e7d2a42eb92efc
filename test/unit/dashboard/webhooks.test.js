import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createViews } from '../../../server/dashboard/views.js'
import { webhooksModel } from '../../../server/dashboard/webhooks-page.js'

const NOW = Date.parse('2026-01-01T00:00:10.000Z')
const DELIVERY = /** @type {const} */ ({ id: 7, at: '2026-01-01T00:00:00.000Z', event: { id: 3, type: 'worker.exited' }, attempt: 2, state: 'pending', status: 503, durationMs: 12, error: 'answered 503', nextAttemptAt: '2026-01-01T00:00:14.000Z' })

/** @param {Partial<import('../../../server/webhooks/deliveries.js').Delivery>[]} deliveries */
function page (...deliveries) {
  const webhook = { id: 1, url: 'https://example.com/hook?<b>=…', events: ['worker.*'], waiting: 4, deliveries: deliveries.map((changes) => ({ ...DELIVERY, ...changes })) }
  return createViews().render('partials/webhooks', { ...webhooksModel({ webhooks: { list: () => [webhook] }, now: NOW }), can: { operate: true } })
}

test('a delivery shows why it waits and for how long; only one that has failed can be tried again', () => {
  const pending = page({})
  assert.match(pending, /Pending<\/span> <span class="delivery-error">answered 503<\/span> <span class="fine">again in <time data-tick="until"[^>]*>4 s</)
  assert.match(pending, /4 waiting for delivery/)
  assert.doesNotMatch(pending, /Try again/)
  assert.doesNotMatch(page({ state: 'delivered', error: null, nextAttemptAt: null }), /Try again/)
  assert.match(page({ state: 'failed', nextAttemptAt: null }), /name="delivery" value="7"><button[^>]*>Try again/)
})

test('what comes from outside is text, not HTML', () => {
  const html = page({ error: '<img src=x>', event: { id: 3, type: '<i>' } })
  assert.doesNotMatch(html, /<(img|i|b)[ >]/)
  assert.match(html, /&lt;img src=x&gt;/)
})

test('without webhooks the page says how to get them', () => {
  const html = createViews().render('partials/webhooks', webhooksModel({ webhooks: { list: () => [] }, now: NOW }))
  assert.match(html, /No webhooks[^]*href="\/docs\/webhooks"/)
})
