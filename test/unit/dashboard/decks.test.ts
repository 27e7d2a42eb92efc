import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from '../../support/fast-check.ts'
import { decksModel, stateOf } from '../../../server/host/page-decks.ts'
import { isAtLoopback } from '../../../server/dashboard/page-address.ts'
import { createViews } from '../../../server/dashboard/views.ts'
import { fake } from '../../support/fake.ts'
import type { Deck } from '../../../server/deck.ts'
import type { Powers } from '../../../server/dashboard/powers.ts'

const OWNER = fake<Powers>({ switchDecks: true })
const STATUS = { state: 'running', readyWorkers: 2, finishedWorkers: 0, desiredWorkers: 2,
  health: { tone: 'ok', text: 'All 2 workers are ready' } }
const MAIL = { id: '0123456789abcdef', name: 'mail', cwd: '/srv/mail', adminUrl: 'http://127.0.0.1:9778',
  publicUrl: null, presence: 'answers', status: STATUS }

function deckOf (...others: object[]) {
  return { status: () => ({ ...STATUS, app: { name: 'shop', cwd: '/srv/shop' } }),
    others: { health: async () => others } } as object as Deck
}

const wordOf = (changes: object, tone: string = 'ok') => {
  const { word, tone: shown } = stateOf({ ...STATUS, ...changes, health: { tone, text: '' } })
  return `${word}, ${shown}`
}

test('a deck is as ready as its workers, and no better than what it says of itself', () => {
  assert.equal(wordOf({}), 'ready, ok')
  assert.equal(wordOf({}, 'warn'), 'ready, warn')
  assert.equal(wordOf({}, 'bad'), 'degraded, bad')
  assert.equal(wordOf({ readyWorkers: 1 }, 'warn'), 'degraded, warn')
  assert.equal(wordOf({ readyWorkers: 1 }, 'info'), 'degraded, warn')
  assert.equal(wordOf({ readyWorkers: 0 }, 'info'), 'not ready, bad')
  assert.equal(wordOf({ readyWorkers: 0, finishedWorkers: 2 }), 'ready, ok')
  assert.equal(wordOf({ readyWorkers: 0, state: 'starting' }, 'info'), 'starting, info')
  assert.equal(wordOf({ state: 'stopping' }, 'drain'), 'stopping, drain')
  assert.equal(stateOf(STATUS).workers, '2/2')
})

test('whatever a master of another version answers is shown', () => {
  fc.assert(fc.property(fc.anything(), fc.anything(), fc.anything(), (status, count, health) => {
    for (const each of [status, { readyWorkers: count, desiredWorkers: count, state: count, health }, { ...STATUS,
      health: { tone: count, text: health } }])
    {
      const { word, tone, workers, text } = stateOf(each)
      assert.match(`${word} ${tone} ${workers}`, /^[a-z ]+ (ok|warn|bad|info|drain) -?\d+\/-?\d+$/)
      assert.ok(typeof text === 'string' && text.length <= 200)
    }
  }))
})

test('where a browser does not reach a deck there is its address, and a way to it', async () => {
  const rows = async (other: object, isAtLoopback: boolean) =>
    (await decksModel({ deck: deckOf(other), can: OWNER, isAtLoopback, host: 'web-1' })).decks.slice(1)
  const [away] = await rows(MAIL, false)
  assert.deepEqual([away.isReachable, away.hint], [false,
    'Not reachable from here. Run ssh -L 9778:127.0.0.1:9778 web-1, or run clusterdeck open -n mail there.'])
  const [odd] = await rows({ ...MAIL, name: '$(reboot)' }, false)
  assert.equal(odd.hint, 'Not reachable from here. Run ssh -L 9778:127.0.0.1:9778 web-1.')
  assert.equal((await rows({ ...MAIL, publicUrl: 'https://ops.example.com/mail' }, false))[0].isReachable, true)
  const [lan] = await rows({ ...MAIL, adminUrl: 'http://10.0.0.7:9777', presence: 'elsewhere', status: null }, true)
  assert.deepEqual([lan.isReachable, lan.word], [false, 'not checked'])
})

test('names, folders and texts of others are text', async () => {
  const hostile = '"><img src=x onerror=alert(1)>\u202E'
  const model = await decksModel({
    deck: deckOf({ ...MAIL, name: hostile, cwd: hostile,
      status: { ...STATUS, readyWorkers: 0, health: { tone: 'bad', text: hostile } } }),
    can: OWNER,
    isAtLoopback: true
  })
  const html = createViews().render('pages/decks', model)
  assert.ok(!html.includes('<img') && !html.includes('\u202E'))
  assert.equal(html.split('&quot;&gt;&lt;img').length, 4)
})

test('only who asks this port of this machine by the same number reaches the other ports so', () => {
  const req = (
    headers: Record<string, string>
  ) => ({ get: (name: string) => headers[name], socket: { localPort: 9777 } } as unknown as Parameters<
    typeof isAtLoopback
  >[0])
  for (const page of ['http://127.0.0.1:9777/logs?q=1', 'https://localhost:9777/', 'http://[::1]:9777/',
    'http://127.3.2.1:9777/'])
  {
    assert.equal(isAtLoopback(req({ 'HX-Current-URL': page, Host: 'x' })), true, page)
  }
  for (const page of ['http://127.0.0.1:8000/', 'http://localhost/', 'https://ops.example.com/deck/',
    'https://ops.example.com:9777/', 'http://10.0.0.7:9777/', 'http://127.0.0.1.example.com:9777/', 'nonsense', ''])
  {
    assert.equal(isAtLoopback(req({ 'HX-Current-URL': page, Host: '127.0.0.1:9777' })), false, page)
  }
  assert.equal(isAtLoopback(req({ Host: '127.0.0.1:9777' })), true)
  assert.equal(isAtLoopback(req({ Host: 'ops.example.com' })), false)
})
