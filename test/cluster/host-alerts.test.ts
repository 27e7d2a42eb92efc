import assert from 'node:assert/strict'
import { json } from 'node:stream/consumers'
import { test } from 'node:test'
import { startHost } from '../support/host.ts'
import { serveHttp } from '../support/http-server.ts'
import { until } from '../support/until.ts'
import type { DeckEvent } from '../../server/events/stream.ts'

test('an alert of the host tells of a crash loop: the app, its error and last line, whether anybody serves, and where', async (t) => {
  const told: { text: string, url: string, event: DeckEvent, deck: { name: string } }[] = []
  const { url } = await serveHttp(t, async (request, response) => {
    told.push(Object(await json(request)))
    response.writeHead(204).end()
  })
  const host = await startHost(t, { flags: ['--admin-public-url', 'https://deck.example.com/'] })
  await host.post('/host/alerts', { kind: 'webhook', url, events: ['worker.crash-looping'] })
  await host.addCode('shop', 'console.error("prices are missing"); process.kill(process.pid, "SIGKILL")')
  await until(() => told.length > 0, 'the alert')
  const [{ text, url: where, event, deck }] = told
  assert.match(text,
    /^shop: Crash loop: Slot 1 crash-loops: .*\nNo worker serves; .*\.\nLast error: .*SIGKILL.*\nLast line: prices are missing$/)
  assert.deepEqual([where, deck.name], [`https://deck.example.com/apps/shop/history/${event.id}`, 'shop'])
})
