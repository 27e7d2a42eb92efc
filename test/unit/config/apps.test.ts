import assert from 'node:assert/strict'
import { test } from 'node:test'
import { appsOf } from '../../../server/config/apps.ts'

// What one of several apps gets, and what is refused of them, is in golden/config.txt.
test('what an app depends on, and whether it is started without being named, is known of all', () => {
  const values = {
    apps: { mail: { entry: 'mail.js', dependsOn: ['shop'], autostart: false }, shop: { entry: 'shop.js' } }
  }
  assert.deepEqual([...appsOf({ file: 'c.json', values })], [['mail', { dependsOn: ['shop'], autostart: false }], [
    'shop',
    { dependsOn: [], autostart: true }
  ]])
  assert.deepEqual([...appsOf({ file: 'c.json', values: { entry: 'shop.js' } })], [])
})
