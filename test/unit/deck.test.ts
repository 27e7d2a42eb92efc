import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deckName } from '../../server/deck.ts'

const APP = { entry: '/srv/shop/app.js', cwd: '/srv/shop' }

test('a deck is called as somebody says, or as its package, or as its folder', () => {
  assert.equal(deckName({ ...APP, name: 'mail' }, { package: { name: '@shop/api' } }), 'mail')
  assert.equal(deckName({ ...APP, name: undefined }, { package: { name: '@shop/api' } }), '@shop/api')
  for (const release of [{ package: { name: null } }, { package: null }, {}, null])
    assert.equal(deckName({ ...APP, name: undefined }, release), 'shop')
  assert.equal(deckName({ entry: '/app.js', cwd: '/', name: undefined }, null), 'app.js')
})
