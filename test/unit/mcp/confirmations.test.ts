import assert from 'node:assert/strict'
import test from 'node:test'
import { createConfirmations } from '../../../server/mcp/confirmations.ts'

test('whoever previews much loses their own oldest confirmations of that app, and nobody else any', () => {
  const confirmations = createConfirmations({ now: () => 0 })
  const keep = (holder: string, base: string) =>
    confirmations.keep({ order: { what: '', method: 'POST', path: '', headers: {} }, holder, base })
  const [own, mine, others] = [keep('ada', '/apps/shop'), keep('ada', '/apps/mail'), keep('grace', '/apps/shop')]
  for (let n = 0; n < 1000; n++) keep('ada', '/apps/shop')
  assert.equal(confirmations.find(own, 'ada'), null)
  assert.ok(confirmations.find(mine, 'ada'))
  assert.ok(confirmations.find(others, 'grace'))
})
