import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeSessionOwners, openSessionOwners } from '../../../workers/session-owners.ts'
import { tempFolder } from '../../support/folder.ts'
import { rareTest } from '../../support/rare.ts'

test('what one worker claims every other one finds, and the last claim counts', (t) => {
  const folder = tempFolder()
  makeSessionOwners(folder)
  const [one, other] = [openSessionOwners(folder), openSessionOwners(folder)]
  t.after(() => {
    one.close()
    other.close()
  })
  const sessions = Array.from({ length: 2000 }, (_, index) => `session ${index}`)
  for (const [index, session] of sessions.entries()) one.claim(session, index + 1)
  assert.deepEqual(sessions.map(other.find), sessions.map((_, index) => index + 1))
  other.claim(sessions[7], 9999)
  assert.equal(one.find(sessions[7]), 9999)
  assert.equal(one.find('unknown'), null)
  makeSessionOwners(folder)
  assert.equal(one.find(sessions[7]), 9999, 'the next master keeps it')
})

rareTest('of more sessions than there is room for, those that were used longest ago give way', (t) => {
  const folder = tempFolder()
  makeSessionOwners(folder)
  let seconds = 1
  const owners = openSessionOwners(folder, { now: () => seconds * 1000 })
  t.after(owners.close)
  for (let index = 0; index < 200_000; index++) {
    seconds = 1 + Math.floor(index / 1000)
    owners.claim(`session ${index}`, 1)
  }
  const found = (from: number) =>
    Array.from({ length: 1000 }, (_, index) => owners.find(`session ${from + index}`)).filter(Boolean).length
  assert.ok(found(199_000) === 1000, `${found(199_000)} of the last 1000`)
  assert.ok(found(0) < 300, `${found(0)} of the first 1000`)
})
