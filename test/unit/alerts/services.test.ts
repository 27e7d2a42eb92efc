import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMailPost } from '../../../server/alerts/mail-post.ts'
import { contentOf } from '../../../server/alerts/services.ts'
import { wordingOf } from '../../../server/alerts/wording.ts'
import { startSmtpReceiver } from '../../support/smtp-receiver.ts'
import { fake } from '../../support/fake.ts'
import type { DeckEvent } from '../../../server/events/stream.ts'
import type { AlertKind } from '../../../server/config/alert.ts'

const HOSTILE =
  'boom <!channel> @everyone [here](https://evil.example) **bold**\r\nBcc: all@example.com\u001b[31m\u202e\u2028'
const DECK = { host: 'web-1', app: 'shop\r\nBcc: all@example.com', url: 'https://deck.example.com',
  entry: '/srv/app.js', pid: 1, version: '0.1.0' }
const EVENT = { id: 7, at: '2026-01-01T00:00:00.000Z', type: 'crash.group-new', cause: 'crash', slot: 3, worker: 7,
  pid: 42, release: 'r12', rollout: null, actor: 'system', code: null, signal: null, uptimeMs: null, message: HOSTILE,
  detail: null } as DeckEvent

function bodyOf (kind: AlertKind) {
  return JSON.parse(String(contentOf({ kind }, EVENT, DECK)))
}

test('what an app throws is text in every service: it mentions nobody, links nowhere and formats nothing', () => {
  const { text, attachments: [{ color, blocks }] } = bodyOf('slack')
  assert.doesNotMatch(text, /[<>]/)
  assert.deepEqual([color, blocks[0].text.text, blocks[0].text.type, blocks[1].text.type], ['#bf2530',
    'shop Bcc: all@example.com: New crash', 'plain_text', 'plain_text'])
  assert.equal(blocks[3].elements[0].url, 'https://deck.example.com/history/7')
  const { embeds: [embed], allowed_mentions: mentions } = bodyOf('discord')
  assert.deepEqual([mentions, embed.url], [{ parse: [] }, 'https://deck.example.com/history/7'])
  assert.match(embed.description,
    /\\<!channel\\> \\@everyone \\\[here\\\]\\\(https\\:\/\/evil\.example\\\) \\\*\\\*bold/)
  const { content: { body, actions } } = bodyOf('teams').attachments[0]
  type Block = { type: string, inlines: { type: string }[] }
  assert.deepEqual(body.map(({ type, inlines: [{ type: run }] }: Block) => [type, run]),
    Array(3).fill(['RichTextBlock', 'TextRun']))
  assert.equal(actions[0].type, 'Action.OpenUrl')
})

test('a message has no control characters, is no longer than services take, and says the event once', () => {
  const { title, text, facts } = wordingOf({ ...EVENT, message: `${HOSTILE}${'x'.repeat(100_000)}` }, DECK)
  assert.doesNotMatch(title + facts, /[\p{Cc}\p{Cf}\u2028]/u)
  assert.doesNotMatch(text, /[^\P{Cc}\n]|[\p{Cf}\u2028]/u)
  assert.deepEqual([text.length, text.startsWith('boom')], [1500, true])
  assert.deepEqual(facts, ['Host web-1', 'Release r12', 'Worker 7 in slot 3'])
})

test('no half of a surrogate pair is sent, neither from an app nor where a text was cut: strict receivers would refuse the message', () => {
  for (const kind of ['slack', 'discord', 'teams', 'sentry', 'webhook'] as const) {
    for (const message of ['a\ud83dz', `${'x'.repeat(1498)}😀😀`, `x${'😀'.repeat(20_000)}`])
      assert.doesNotMatch(String(contentOf({ kind }, { ...EVENT, message }, DECK)), /\\ud[89a-f]/, kind)
  }
})

test('a mail goes to all receivers, and no text of an app adds a header', async (t) => {
  const { mails, recipients, port } = await startSmtpReceiver(t)
  const post = createMailPost({ host: '127.0.0.1', port, from: 'deck@example.com',
    to: ['ops@example.com', 'ada@example.com'] })
  const content = contentOf({ kind: 'mail' }, EVENT, DECK)
  const answer = await post({ id: 'msg_1', content, event: EVENT }, { time: 0, patienceMs: 5000,
    signal: new AbortController().signal })
  assert.deepEqual(answer, { status: 250, error: null, canRetry: false })
  assert.deepEqual(recipients, ['RCPT TO:<ops@example.com>', 'RCPT TO:<ada@example.com>'])
  const [headers] = mails[0].split('\r\n\r\n')
  assert.doesNotMatch(headers, /^Bcc:/im)
  assert.match(headers, /^Subject: shop Bcc: all@example\.com: New crash$/m)
  assert.match(headers, /^Auto-Submitted: auto-generated$/m)
  assert.match(mails[0], /^At \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\r$/m)
  assert.match(mails[0], /https:\/\/deck\.example\.com\/history\/7/)
})

for (const [afterRecipient, expected] of [['450 not now, secret-host', { status: 450, error: 'answered 450',
  canRetry: true }], ['550 nobody of this name at secret-host', { status: 550, error: 'answered 550',
  canRetry: false }]] as const)
{
  test(`a mail server that answers ${afterRecipient} is quoted by its number alone`, async (t) => {
    const { port } = await startSmtpReceiver(t, { afterRecipient })
    const post = createMailPost({ host: '127.0.0.1', port, from: 'deck@example.com', to: ['ops@example.com'] })
    assert.deepEqual(
      await post({ id: 'msg_1', content: contentOf({ kind: 'mail' }, EVENT, DECK), event: EVENT }, { time: 0,
        patienceMs: 5000, signal: new AbortController().signal }),
      expected
    )
  })
}

test('a password never goes unencrypted to another machine, and a mail that is given up rejects nothing', async () => {
  let asked: { [name: string]: unknown, tls: { rejectUnauthorized: boolean } } = fake({})
  const load = async () => ({ createTransport: (options: typeof asked) => {
    asked = options
    return { sendMail: () => new Promise(() => {}), close () {} }
  } })
  const post = createMailPost({ host: 'smtp.example.com', user: 'deck', password: 'hidden', from: 'a@example.com',
    to: ['b@example.com'] }, { load: load as unknown as () => Promise<typeof import('nodemailer')> })
  const closing = new AbortController()
  const answer = post({ id: 'msg_1', content: contentOf({ kind: 'mail' }, EVENT, DECK), event: EVENT }, { time: 0,
    patienceMs: 5000, signal: closing.signal })
  closing.abort()
  const { error, canRetry } = await answer
  assert.deepEqual([asked.requireTLS, asked.tls.rejectUnauthorized, asked.secure, asked.port, canRetry], [true, true,
    false, 587, true])
  assert.doesNotMatch(String(error), /hidden/)
})

test('where the mail program cannot be loaded, the message is tried again', async () => {
  const load = async () => {
    throw Object.assign(new Error(), { code: 'EMFILE' })
  }
  const post = createMailPost({ host: '127.0.0.1', from: 'deck@example.com', to: ['ops@example.com'] }, { load })
  assert.deepEqual(
    await post({ id: 'msg_1', content: '', event: EVENT }, { time: 0, patienceMs: 5000,
      signal: new AbortController().signal }),
    { status: null, error: 'EMFILE', canRetry: true }
  )
})
