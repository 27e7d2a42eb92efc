import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { json } from 'node:stream/consumers'
import path from 'node:path'
import { test } from 'node:test'
import { tempFolder } from '../support/folder.ts'
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
  const cwd = tempFolder()
  writeFileSync(path.join(cwd, 'app.js'), 'console.error("prices are missing"); process.kill(process.pid, "SIGKILL")')
  await host.add({ name: 'shop', cwd, flags: { entry: 'app.js', workers: '1' }, env: { PATH: process.env.PATH } })
  await until(() => told.length > 0, 'the alert')
  const [{ text, url: where, event, deck }] = told
  assert.match(text,
    /^shop: Crash loop: Slot 1 crash-loops: .*\nNo worker serves; .*\.\nLast error: .*SIGKILL.*\nLast line: prices are missing$/)
  assert.deepEqual([where, deck.name], [`https://deck.example.com/apps/shop/history/${event.id}`, 'shop'])
})
