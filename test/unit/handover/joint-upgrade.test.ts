import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DeckError, errorText } from '../../../server/errors.ts'
import { createJointUpgrade, openTogether } from '../../../server/handover/joint-upgrade.ts'
import { keptEvents } from '../../support/event-log.ts'
import type { ToKeeper } from '../../../server/keeper/link.ts'

const ORDER = Object.freeze({ type: 'upgrade' as const, execPath: '/usr/bin/node', note: null, actor: 'ada' })

test('whoever asks, all apps begin, each waits as long as the slowest may take, and the keeper is told once', () => {
  const { upgrade, keeper, begun, join } = setUp()
  join('shop', { readyTimeoutMs: 1000 })
  join('blog', { readyTimeoutMs: 60_000 }).begin(ORDER)
  const order = { ...ORDER, execPath: '/real/node', readyWithinMs: 63_000 }
  assert.deepEqual(begun.splice(0), [['shop', order], ['blog', order]])
  assert.throws(() => upgrade.begin(ORDER), { code: 'upgrade-running' })
  keeper.say('upgrade-failed', { reason: 'SIGKILL' })
  upgrade.begin(ORDER)
  assert.deepEqual(begun.map(([name]) => name), ['shop', 'blog'])
  const sent = { type: 'upgrade', execPath: '/real/node', apps: ['shop', 'blog'] }
  assert.deepEqual(keeper.sent, [sent, sent])
})

test('what one app has against it is said with its name, and nothing begins', () => {
  const { upgrade, keeper, begun, join } = setUp()
  const shop = join('shop')
  join('blog', {
    refusal: new DeckError('rollout-running', 'rollout 7 (deploy) is running', { details: { rollout: 7 } })
  })
  for (const begin of [shop.begin, upgrade.begin]) {
    assert.throws(() => begin(ORDER), { code: 'rollout-running', message: 'blog: rollout 7 (deploy) is running',
      details: { rollout: 7, app: 'blog' } })
  }
  assert.deepEqual([begun, keeper.sent], [[], []])
})

test('an app that does not serve stands aside, unless it is the one that is asked', () => {
  const { upgrade, keeper, begun, join } = setUp()
  join('shop')
  const boots = join('boots', { refusal: new DeckError('starting', 'the workers are still starting') })
  const loops = join('loops', { isServing: false })
  upgrade.begin(ORDER)
  keeper.say('upgrade-failed', { reason: 'SIGKILL' })
  assert.throws(() => boots.begin(ORDER), { code: 'starting', message: 'the workers are still starting' })
  loops.begin(ORDER)
  assert.deepEqual(begun.map(([name]) => name), ['shop', 'shop', 'loops'])
  assert.deepEqual(keeper.sent.map(({ apps }) => apps), [['shop'], ['shop', 'loops']])
})

test('an app that has gone has no say, and one that is here again has its own', () => {
  const { upgrade, keeper, join } = setUp()
  const first = join('shop')
  join('shop')
  first.leave()
  upgrade.begin(ORDER)
  keeper.say('upgrade-failed', { reason: 'SIGKILL' })
  join('blog').leave()
  upgrade.begin(ORDER)
  assert.deepEqual(keeper.sent.map(({ apps }) => apps), [['shop'], ['shop']])
})

test('the host tells that it runs, and why it has failed: by the first reason that was told, else by how the next master ended', () => {
  const { upgrade, keeper, told, join } = setUp()
  join('shop')
  assert.deepEqual([upgrade.running, upgrade.failure], [null, null])
  assert.deepEqual(upgrade.begin({ ...ORDER, note: 'autumn' }), { startedAt: '1970-01-01T00:00:00.000Z', actor: 'ada',
    note: 'autumn' })
  assert.equal(upgrade.running?.note, 'autumn')
  keeper.say('relay', { failing: 'shop: worker 3 exited' })
  keeper.say('relay', { failing: 'blog: worker 5 exited' })
  keeper.say('upgrade-failed', { reason: 'exit code 1' })
  assert.deepEqual([upgrade.running, upgrade.failure], [null, { at: '1970-01-01T00:00:00.000Z',
    message: 'shop: worker 3 exited' }])
  upgrade.begin(ORDER)
  keeper.lose()
  assert.equal(upgrade.failure?.message, 'the next master ended before it was ready (the keeper is gone)')
  keeper.say('upgrade-failed', { reason: 'nobody asked for it' })
  assert.deepEqual(told.map(({ type, actor, message }) => [type, actor, message]), [['master.upgrading', 'ada',
    'the next master starts: autumn'], ['master.upgrade-failed', 'ada', 'shop: worker 3 exited'], ['master.upgrading',
    'ada', 'the next master starts'], ['master.upgrade-failed', 'ada',
    'the next master ended before it was ready (the keeper is gone)']])
})

test('a next master for which no app waits is ended if it takes too long', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { upgrade, keeper } = setUp()
  upgrade.begin(ORDER)
  t.mock.timers.tick(30_000)
  assert.deepEqual(keeper.sent.map(({ type }) => type), ['upgrade', 'cancel'])
  keeper.say('upgrade-failed', { reason: 'SIGKILL' })
  assert.equal(upgrade.failure?.message, 'the next master was not ready within 30000 ms')
  upgrade.begin(ORDER)
  keeper.say('upgrade-failed', { reason: 'SIGKILL' })
  t.mock.timers.tick(30_000)
  assert.equal(keeper.sent.length, 3)
})

test('without a keeper there is none', () => {
  const { upgrade, keeper, begun, join } = setUp()
  keeper.isKept = false
  join('shop')
  assert.throws(() => upgrade.begin(ORDER), { code: 'not-possible', message: /this host runs without one/ })
  assert.deepEqual([begun, keeper.sent], [[], []])
})

test('apps that are opened together are waited for until this is the only master; what fails then is its own matter', async () => {
  const lines = openLines()
  const opening = openTogether(['shop', 'blog'], { whyOf, async open (id) {
    await lines.alone
    if (id === 'blog') throw new Error('its folder is full')
    return id.toUpperCase()
  } }, lines)
  assert.deepEqual(lines.awaited, [['shop', 'blog']])
  lines.say('take-over')
  const { opened, failed } = await opening
  assert.deepEqual([[...opened], [...failed].map(([name, { message }]) => [name, message])], [[['shop', 'SHOP']], [[
    'blog',
    'its folder is full'
  ]]])
})

test('one that cannot be opened fails all, and the others have gone by then', async () => {
  const lines = openLines()
  let isGone = false
  const opening = openTogether(['shop', 'blog'], { whyOf, async open (id) {
    if (id === 'blog') throw new Error('its folder is full')
    await lines.failing
    await new Promise(setImmediate)
    isGone = true
    throw new DeckError('upgrade-failed', 'blog: its folder is full')
  } }, lines)
  await assert.rejects(opening, { code: 'upgrade-failed', message: 'blog: its folder is full' })
  assert.ok(isGone)
  assert.deepEqual(lines.told, ['blog: its folder is full'])
})

test('a keeper that is gone ends it where no app is waited for, too', async () => {
  const lines = openLines()
  const opening = openTogether([], { whyOf, open: async () => {} }, lines)
  lines.lose()
  await assert.rejects(opening, { code: 'upgrade-failed', message: 'the keeper is gone' })
})

function whyOf (id: string, error: unknown) {
  return `${id}: ${errorText(error)}`
}

function setUp () {
  const begun: [string, unknown][] = []
  const handlers: Record<string, (message: never) => void> = {}
  const keeper = { isKept: true, sent: [] as { type: string, apps?: string[] }[], send (message: ToKeeper) {
    keeper.sent.push(message)
  }, on (type: string, handler: (message: never) => void) {
    handlers[type] = handler
  }, onLost (handler: () => void) {
    keeper.lose = handler
  }, lose () {}, say: (type: string, message: object) => handlers[type](message as never),
    failNext: (failing: string) => keeper.say('relay', { failing }) }
  const { events: told, publish } = keptEvents()
  const upgrade = createJointUpgrade(keeper, { turnMs: 3000, events: { publish }, now: () => 0 })
  return { keeper, upgrade, begun, told, join }

  function join (name: string,
    { refusal, isServing = true, readyTimeoutMs = 30_000 }: { refusal?: DeckError, isServing?: boolean,
      readyTimeoutMs?: number } = {})
  {
    const own = upgrade.of(name, name)
    const leave = own.join({ check (order) {
      if (refusal) throw refusal
      return { ...order, execPath: '/real/node' }
    }, look: () => ({ isServing, readyTimeoutMs }), begin: (order) => {
      begun.push([name, order])
    } })
    return { begin: own.begin, leave }
  }
}

function openLines () {
  const awaited = [] as (readonly string[])[]
  const told = [] as string[]
  const handlers: Record<string, (message: never) => void> = {}
  const say = (type: string, message: object = {}) => handlers[type](message as never)
  let lose = () => {}
  let fail: (value?: unknown) => void = () => {}
  let takeOver: (value?: unknown) => void = () => {}
  const [failing, alone] = [new Promise((resolve) => {
    fail = resolve
  }), new Promise((resolve) => {
    takeOver = resolve
  })]
  const keeper = { on (type: string, handler: (message: never) => void) {
    handlers[type] = handler
  }, onLost (handler: () => void) {
    lose = handler
  }, failUpgrade (reason: string) {
    told.push(reason)
    say('upgrade-failed', { reason })
    fail()
  } }
  return { links: { awaitServing (names: readonly string[]) {
    awaited.push(names)
  } }, keeper, awaited, told, failing, alone, lose: () => lose(), say (type: string) {
    say(type)
    takeOver()
  } }
}
