import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DeckError } from '../../../server/errors.js'
import { createJointUpgrade, openTogether } from '../../../server/handover/joint-upgrade.js'

const ORDER = Object.freeze({ type: /** @type {const} */ ('upgrade'), execPath: '/usr/bin/node', note: null, actor: 'ada' })

test('whoever asks, all apps begin, each waits as long as the slowest may take, and the keeper is told once', () => {
  const { upgrade, keeper, begun, join } = setUp()
  join('shop', { readyTimeoutMs: 1000 })
  join('blog', { readyTimeoutMs: 60_000 }).begin(ORDER)
  const order = { ...ORDER, execPath: '/real/node', readyWithinMs: 66_000 }
  assert.deepEqual(begun.splice(0), [['shop', order], ['blog', order]])
  upgrade.begin(ORDER)
  assert.deepEqual(begun.map(([name]) => name), ['shop', 'blog'])
  const sent = { type: 'upgrade', execPath: '/real/node', apps: ['shop', 'blog'] }
  assert.deepEqual(keeper.sent, [sent, sent])
})

test('what one app has against it is said with its name, and nothing begins', () => {
  const { upgrade, keeper, begun, join } = setUp()
  const shop = join('shop')
  join('blog', { refusal: new DeckError('rollout-running', 'rollout 7 (deploy) is running', { details: { rollout: 7 } }) })
  for (const begin of [shop.begin, upgrade.begin]) {
    assert.throws(() => begin(ORDER), { code: 'rollout-running', message: 'blog: rollout 7 (deploy) is running', details: { rollout: 7, app: 'blog' } })
  }
  assert.deepEqual([begun, keeper.sent], [[], []])
})

test('an app that does not serve stands aside, unless it is the one that is asked', () => {
  const { upgrade, keeper, begun, join } = setUp()
  join('shop')
  const boots = join('boots', { refusal: new DeckError('starting', 'the workers are still starting') })
  const loops = join('loops', { isServing: false })
  upgrade.begin(ORDER)
  assert.throws(() => boots.begin(ORDER), { code: 'starting', message: 'boots: the workers are still starting' })
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
  join('blog').leave()
  upgrade.begin(ORDER)
  assert.deepEqual(keeper.sent.map(({ apps }) => apps), [['shop'], ['shop']])
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
  const opening = openTogether(['shop', 'blog'], async (name) => {
    await lines.alone
    if (name === 'blog') throw new Error('its folder is full')
    return name.toUpperCase()
  }, lines)
  assert.deepEqual(lines.awaited, [['shop', 'blog']])
  lines.say('take-over')
  const { opened, failed } = await opening
  assert.deepEqual([[...opened], [...failed].map(([name, { message }]) => [name, message])], [[['shop', 'SHOP']], [['blog', 'its folder is full']]])
})

test('one that cannot be opened fails all, and the others have gone by then', async () => {
  const lines = openLines()
  let isGone = false
  const opening = openTogether(['shop', 'blog'], async (name) => {
    if (name === 'blog') throw new Error('its folder is full')
    await lines.failing
    await new Promise(setImmediate)
    isGone = true
    throw new DeckError('upgrade-failed', 'blog: its folder is full')
  }, lines)
  await assert.rejects(opening, { code: 'upgrade-failed', message: 'blog: its folder is full' })
  assert.ok(isGone)
  assert.deepEqual(lines.told, ['blog: its folder is full'])
})

test('a keeper that is gone ends it where no app is waited for, too', async () => {
  const lines = openLines()
  const opening = openTogether([], async () => {}, lines)
  lines.lose()
  await assert.rejects(opening, { code: 'upgrade-failed', message: 'the keeper is gone' })
})

function setUp () {
  /** @type {[string, any][]} */
  const begun = []
  const keeper = { isKept: true, sent: /** @type {any[]} */ ([]), send (/** @type {any} */ message) { keeper.sent.push(message) } }
  const upgrade = createJointUpgrade(keeper, { turnMs: 3000 })
  return { keeper, upgrade, begun, join }

  /** @param {string} name @param {{ refusal?: DeckError, isServing?: boolean, readyTimeoutMs?: number }} [how] */
  function join (name, { refusal, isServing = true, readyTimeoutMs = 30_000 } = {}) {
    const own = upgrade.of(name)
    const leave = own.join({
      check (order) {
        if (refusal) throw refusal
        return { ...order, execPath: '/real/node' }
      },
      look: () => ({ isServing, readyTimeoutMs }),
      begin: (order) => { begun.push([name, order]) }
    })
    return { begin: own.begin, leave }
  }
}

function openLines () {
  const awaited = /** @type {(readonly string[])[]} */ ([])
  const told = /** @type {string[]} */ ([])
  /** @type {Record<string, (message: any) => void>} */
  const handlers = {}
  let lose = () => {}
  /** @type {(value?: unknown) => void} */
  let fail = () => {}
  /** @type {(value?: unknown) => void} */
  let takeOver = () => {}
  const [failing, alone] = [new Promise((resolve) => { fail = resolve }), new Promise((resolve) => { takeOver = resolve })]
  const keeper = {
    on (/** @type {string} */ type, /** @type {(message: any) => void} */ handler) { handlers[type] = handler },
    onLost (/** @type {() => void} */ handler) { lose = handler },
    failUpgrade (/** @type {string} */ reason) {
      told.push(reason)
      handlers['upgrade-failed']({ reason })
      fail()
    }
  }
  return {
    links: { awaitServing (/** @type {readonly string[]} */ names) { awaited.push(names) } },
    keeper,
    awaited,
    told,
    failing,
    alone,
    lose: () => lose(),
    say (/** @type {string} */ type) {
      handlers[type]({})
      takeOver()
    }
  }
}
