import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkedUpgrade, deckName } from '../../server/deck.ts'

const APP = { entry: '/srv/shop/app.js', cwd: '/srv/shop' }

test('a deck is called as somebody says, or as its package, or as its folder', () => {
  assert.equal(deckName({ ...APP, name: 'mail' }, { package: { name: '@shop/api' } }), 'mail')
  assert.equal(deckName({ ...APP, name: undefined }, { package: { name: '@shop/api' } }), '@shop/api')
  for (const release of [{ package: { name: null } }, { package: null }, {}, null])
    assert.equal(deckName({ ...APP, name: undefined }, release), 'shop')
  assert.equal(deckName({ entry: '/app.js', cwd: '/', name: undefined }, null), 'app.js')
})

test('an upgrade in place needs a keeper', () => {
  const command = { execPath: null }
  assert.equal(checkedUpgrade(command, true), command)
  assert.throws(() => checkedUpgrade(command, false), { code: 'not-possible', message: /needs the keeper/ })
})
