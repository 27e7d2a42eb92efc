import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import type { IncomingHttpHeaders } from 'node:http'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { test, type TestContext } from 'node:test'
import { marked } from 'marked'
import { fillTemplate, templateFlaw } from '../../../public/alert-template.ts'
import { contentOf, createPost } from '../../../server/alerts/services.ts'
import { ALERT, type Alert } from '../../../server/config/alert.ts'
import { serveHttp } from '../../support/http-server.ts'
import type { DeckEvent } from '../../../server/events/stream.ts'

const PAGE = readFileSync(path.resolve(import.meta.dirname, '../../../views/docs/alerts.md'), 'utf8')
const HOSTILE = '"}, "severity": "x" \\ {{app}} $& \r\nBcc: all@example.com\u2028\ud83d'
const DECK = { host: 'web-1', app: 'shop', url: 'https://deck.example.com', entry: '/srv/app.js', pid: 1,
  version: '0.1.0' }
const EVENT = { id: 7, at: '2026-01-01T00:00:00.000Z', type: 'worker.crash-looping', cause: null, slot: 3, worker: 7,
  pid: 42, release: 'r12', rollout: null, actor: 'system', code: null, signal: null, uptimeMs: null, message: HOSTILE,
  detail: null } as DeckEvent

/** What a service on this machine gets of an alert. */
async function delivered (t: TestContext, target: Partial<Alert>, event: DeckEvent = EVENT) {
  const received: { headers: IncomingHttpHeaders, body: string }[] = []
  const { url } = await serveHttp(t, async (request, response) => {
    received.push({ headers: request.headers, body: await text(request) })
    response.end()
  })
  const alert = ALERT.parse({ kind: 'webhook', url, ...target })
  const answer = await createPost(alert, {})({ id: 'msg_1', content: contentOf(alert, event, DECK), event }, { time: 0,
    patienceMs: 5000, signal: new AbortController().signal })
  assert.deepEqual(answer, { status: 200, error: null, canRetry: false })
  return received[0]
}

/** The body that the manual has for a service. */
function bodyInManual (service: string): string {
  const tokens = marked.lexer(PAGE)
  const at = tokens.findIndex((token) => token.type === 'paragraph' && token.text.startsWith(`${service}, to `))
  const block = tokens.slice(at).find(({ type }) => type === 'code')
  return block?.type === 'code' ? block.text : ''
}

/**
 * What the documentation of each service asks for: the fields that it knows, and of what they have to be.
 * https://developer.pagerduty.com/docs/send-alert-event, https://docs.ntfy.sh/publish/#publish-as-json,
 * https://core.telegram.org/bots/api#sendmessage
 */
const SERVICES: Record<string, Record<string, RegExp>> = {
  PagerDuty: { routing_key: /^"[\da-f]{32}"$/, event_action: /^"(trigger|acknowledge|resolve)"$/,
    dedup_key: /^"shop-7"$/, 'payload.summary': /^"shop: Crash loop"$/, 'payload.source': /^"web-1"$/,
    'payload.severity': /^"(critical|error|warning|info)"$/, 'payload.timestamp': /^"2026-01-01T00:00:00\.000Z"$/,
    'payload.component': /^"shop"$/, 'payload.class': /^"worker\.crash-looping"$/, 'payload.custom_details': /^\{/ },
  ntfy: { topic: /^"[\w-]{1,64}"$/, title: /^"shop: Crash loop"$/, message: /^"[^]{1,4096}"$/, priority: /^[1-5]$/,
    tags: /^\["error"\]$/, click: /^"https:\/\/deck\.example\.com\/history\/7"$/ },
  Telegram: { chat_id: /^"-\d+"$/,
    text: /^"shop: Crash loop\\n\\n[^]{1,4000}\\n\\nhttps:\/\/deck\.example\.com\/history\/7"$/,
    link_preview_options: /^\{"is_disabled":true\}$/ }
}

for (const [service, fields] of Object.entries(SERVICES)) {
  test(`the body that the manual has for ${service} arrives with the fields that its documentation asks for, whatever an event says`, async (t) => {
    const { headers, body } = await delivered(t, { body: bodyInManual(service) })
    assert.equal(headers['content-type'], 'application/json')
    const sent = JSON.parse(body)
    const flat = Object.fromEntries(
      Object.entries(sent).flatMap(([name, value]) =>
        name === 'payload'
          ? Object.entries(Object(value)).map(([inner, each]) => [`${name}.${inner}`, each])
          : [[name, value]]
      )
    )
    assert.deepEqual(Object.keys(flat), Object.keys(fields))
    for (const [name, pattern] of Object.entries(fields)) assert.match(JSON.stringify(flat[name]), pattern, name)
    assert.ok(body.includes('severity\\": \\"x\\" \\\\ {{app}} $& '), 'what the event says is text')
    assert.doesNotMatch(body, /\\ud83d/, 'no half of a surrogate pair')
  })
}

test('an object of the configuration file is a body too, and headers go along, one of each name, under a signature of ours', async (t) => {
  const { headers, body } = await delivered(t, { body: { n: 1, list: [{ 'a b': '{{ app }}@{{host}} {{url}}' }] },
    headers: { Authorization: 'Bearer key', 'Content-Type': 'application/cloudevents+json', 'Webhook-Id': 'forged' },
    secret: 'of the receiver alone' })
  assert.deepEqual(JSON.parse(body), { n: 1, list: [{ 'a b': 'shop@web-1 https://deck.example.com/history/7' }] })
  assert.deepEqual([headers.authorization, headers['content-type'], headers['webhook-id']], ['Bearer key',
    'application/cloudevents+json', 'msg_1'])
})

test('a body that would not do is refused, by what was expected and received, and no key is quoted', () => {
  const flaws = Object.fromEntries(
    ['{"a": "{{titel}}"}', '{"{{title}}": 1}', '{"a": "secret"', '"{{title}}"', 'null', '{"a": "{{ title }} {b} {{"}']
      .map((template) => [template, templateFlaw(template)?.received ?? null])
  )
  assert.deepEqual(flaws, { '{"a": "{{titel}}"}': '{{titel}}', '{"{{title}}": 1}': '{{title}} in a name',
    '{"a": "secret"': 'a text that is no JSON', '"{{title}}"': 'another value', null: 'another value',
    '{"a": "{{ title }} {b} {{"}': null })
  assert.match(String(templateFlaw('{"a": "{{titel}}"}')?.expected),
    /^placeholders among \{\{title\}\}, \{\{message\}\}/)
})

test('a value is put in once: it is searched for no placeholders, and reaches no prototype', () => {
  const template = '{"__proto__": {"x": "{{a}}"}, "b": "{{toString}}"}'
  const filled = fillTemplate(template, { a: '{{b}}"', b: 'no' })
  assert.equal(JSON.stringify(filled), '{"__proto__":{"x":"{{b}}\\""},"b":""}')
})
